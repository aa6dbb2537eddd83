package mounting

import (
	"testing"

	"rankfs/cmd/internal/failure"
)

// What a background child reports is what its parent ends with.
func TestToldExitCode(t *testing.T) {
	if got := failure.ExitCode(failure.Hint(toldError{outcome{Message: "it is taken", Code: 4}}, "wait")); got != 4 {
		t.Errorf("exit code %d", got)
	}
}
