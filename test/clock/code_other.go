//go:build !amd64

package clock

import (
	"errors"
	"fmt"
	"runtime"
)

func clockGettime(int64) ([]byte, error) {
	return nil, fmt.Errorf("there is no code for %s yet: %w; see code_amd64.go", runtime.GOARCH, errors.ErrUnsupported)
}
