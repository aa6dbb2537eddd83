//go:build !race

package system_test

const (
	buildFlag = "-race=false"
	shadow    = 1
)
