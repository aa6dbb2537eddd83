//go:build !race

package system_test

const (
	race   = false
	shadow = 1
)
