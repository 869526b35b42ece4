#!/bin/sh
# Prints an order: orders.sh NUMBER. In place of a shop's own tool.
echo "{\"order\": \"$1\", \"date\": 1795478400, \"state\": 3}"
