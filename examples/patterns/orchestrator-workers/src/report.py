from users import fetch_user

print(fetch_user("ada"))
