package connector

import "time"

// clockEvery is how many rows that were read together share one look at the machine's clock.
const clockEvery = 32

// clock is the pump's. Looking at the machine's clock costs as much as decoding a column, and a
// row needs it three times; rows that were read together are some microseconds apart. It is looked
// at again after every wait.
type clock struct {
	at   time.Time
	left int // uses before the next look
}

func (c *clock) now() time.Time {
	if c.left == 0 {
		c.at, c.left = time.Now(), clockEvery
	}
	c.left--
	return c.at
}

// waited says that time has passed.
func (c *clock) waited() { c.left = 0 }
