package main

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// shopTables is the sample shop, with a table for each replica identity: what is known of the old
// row differs.
const shopTables = `
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, email text);
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, total numeric(10,2) NOT NULL,
	status text NOT NULL, placed timestamptz NOT NULL DEFAULT now());
ALTER TABLE orders REPLICA IDENTITY FULL;
CREATE TABLE products (id int PRIMARY KEY, name text NOT NULL, price numeric(10,2), sheet text);
ALTER TABLE products ALTER sheet SET STORAGE EXTERNAL;
CREATE TABLE carts (customer int, product int, quantity int, PRIMARY KEY (customer, product));
INSERT INTO customers VALUES (1, 'Ada', 'ada@example.org'), (2, 'Edgar', NULL);
INSERT INTO products VALUES (1, 'Tide table', 12.50, repeat('high water, low water; ', 200));
INSERT INTO orders (id, customer, total, status) VALUES (1, 1, 12.50, 'new');
`

// shopSteps are played in a loop, one a moment; {n} is the round, so that keys are new each time.
// Together they show every operation and every state of the before-image.
var shopSteps = []string{
	`INSERT INTO customers VALUES ({n}, 'Grace', 'grace@example.org')`,
	`UPDATE customers SET email = 'hopper@example.org' WHERE id = {n}`,
	`INSERT INTO orders (id, customer, total, status) VALUES ({n}, {n}, 99.90, 'new')`,
	`UPDATE orders SET status = 'paid', total = 89.90 WHERE id = {n}`,
	`UPDATE products SET price = price + 0.50 WHERE id = 1`,
	`UPDATE customers SET id = id + 100000 WHERE id = {n}`,
	`INSERT INTO carts VALUES (1, {n}, 2), (2, {n}, 1)`,
	`SELECT pg_logical_emit_message(true, 'shop', 'stocktaking {n}')`,
	`TRUNCATE carts`,
	`DELETE FROM orders WHERE id = {n}`,
	`DELETE FROM customers WHERE id = {n} + 100000`,
}

// runShop plays the steps until ctx ends.
func runShop(ctx context.Context, pg *testenv.Postgres, db string) error {
	conn, err := pg.Connect(ctx, db)
	if err != nil {
		return quietStop(ctx, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is in flight
	for round := 10; ; round++ {
		for _, step := range shopSteps {
			sql := strings.ReplaceAll(step, "{n}", strconv.Itoa(round))
			if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				return quietStop(ctx, err)
			}
			if !pause(ctx, 300*time.Millisecond+rand.N(200*time.Millisecond)) {
				return nil
			}
		}
	}
}
