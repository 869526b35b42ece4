def total(items, discount):
    return sum(item.cents for item in items) - discount
