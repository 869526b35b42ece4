alter table orders add column note text;
alter table orders rename column total to total_cents;
create index orders_by_customer on orders (customer);
