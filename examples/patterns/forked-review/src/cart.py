def line(items):
    print("cart")
    return show(total(items, 0.5))
