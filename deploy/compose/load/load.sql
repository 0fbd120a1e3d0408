-- One round: every operation, every state of the before-image, and no growth for ever.
INSERT INTO customers (name, email) VALUES ('Grace', 'grace@example.org');
UPDATE customers SET email = 'hopper@example.org' WHERE id = (SELECT max(id) FROM customers);
INSERT INTO orders (customer, total, status) SELECT max(id), 99.90, 'new' FROM customers;
UPDATE orders SET status = 'paid', total = 89.90 WHERE id = (SELECT max(id) FROM orders);
INSERT INTO carts VALUES (1, 7, 2), (2, 7, 1);
TRUNCATE carts;
-- A change of key arrives as a delete, a tombstone and an insert.
UPDATE customers SET id = -id WHERE id = (SELECT max(id) FROM customers);
DELETE FROM customers WHERE id < 0;
DELETE FROM orders WHERE id < (SELECT max(id) - 100 FROM orders);
