def fetch_user(key):
    return cache.get(key) or database.get(key)
