package cluster

import (
	"errors"
	"os"
)

// NeedRoot is why nothing here can be done, unless root runs this program. It comes
// before all that takes time.
func NeedRoot() error {
	if os.Getuid() != 0 {
		return errors.New("only root can make hosts, and mount: run the tests as root")
	}
	return nil
}
