package nodes_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"rankfs/test/daemon"
)

// patience is how long one condition is waited for. It bounds a hang, on a machine
// that is busy with other things too.
const patience = 4 * time.Minute

// rankfs is the daemon and the command.
var rankfs string

// Tests here wait most of the time, for daemons and before that for hosts that are free.
// How many of them run at a time is for the clusters to say, not for the processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "100"); err != nil { // of tests; the command line may say less
		panic(err)
	}
	os.Exit(daemon.Main(m, &rankfs))
}
