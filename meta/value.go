package meta

import (
	"fmt"
	"strconv"
)

// count is a value of a spec that says how many.
func count(key, value string, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%s=%s in spec %w: write a number from 1 to %d", key, clip(value), ErrInvalid, most)
	}
	return n, nil
}

// clip keeps the error about an endless word short.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}
