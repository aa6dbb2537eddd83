//go:build race

package system_test

// The daemon is built as the tests are. A race in it makes it exit with 66,
// which every test takes for a failure.
const race = true

// shadow is how many times as much memory the daemon has with what the detector keeps of it.
const shadow = 3
