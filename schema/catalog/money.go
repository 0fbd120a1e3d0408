package catalog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// MoneyDigits returns how many fractional digits the database's currency has: the scale of money.
//
// It is a matter of lc_monetary, which is pinned to C on our sessions, and a session that asked
// for it when it connected can no longer see what it would be otherwise. So one more connection
// is made, with the same settings but that one, and closed again. What is asked there is which
// integer the database stores for one unit: 100 with two digits, 1 with none, 1000 with three.
func (c *Catalog) MoneyDigits(ctx context.Context) (digits int, err error) {
	const what = "ask for the fractional digits of lc_monetary"
	config := c.conn.Config()
	delete(config.RuntimeParams, "lc_monetary")
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var unit int64
	err = conn.QueryRow(ctx, `SELECT ('x' || pg_catalog.encode(
		pg_catalog.cash_send('1'::pg_catalog.money), 'hex'))::pg_catalog.bit(64)::pg_catalog.int8`,
		pgx.QueryExecModeExec).Scan(&unit)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	for rest := unit; rest != 1; rest /= 10 {
		if rest <= 0 || rest%10 != 0 {
			return 0, fmt.Errorf("%s: one unit of money is stored as %s, which is no power of ten",
				what, strconv.FormatInt(unit, 10))
		}
		digits++
	}
	return digits, nil
}
