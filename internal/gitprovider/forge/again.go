package forge

import (
	"context"
	"time"
)

// looksAgain limits how often Settled reads again.
const looksAgain = 3

// Settled reads again what the forge is still working on: after a step, two steps and three, then it takes what it got.
func Settled[T any](ctx context.Context, value T, working func(T) bool, step time.Duration,
	sleep func(context.Context, time.Duration), read func() (T, error)) (T, error) {
	for i := 1; i <= looksAgain && working(value); i++ {
		sleep(ctx, time.Duration(i)*step)
		next, err := read()
		if err != nil {
			return value, err
		}
		value = next
	}
	return value, nil
}
