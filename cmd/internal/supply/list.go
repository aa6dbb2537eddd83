package supply

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"rankfs/meta"
)

// maxLines bounds a list: more pairs than any node has cores.
const maxLines = 1 << 16

// readList reads one path a line. Blank lines and those that begin with # do
// not count.
func readList(name string) ([]string, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list %s %w; write one with a path on each line", name, meta.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var paths []string
	for s := bufio.NewScanner(f); ; {
		if !s.Scan() {
			if err := s.Err(); err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
			return paths, nil
		}
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if strings.ContainsRune(line, 0) {
			return nil, fmt.Errorf("read %s: path %d holds a zero byte", name, len(paths)+1)
		}
		if paths = append(paths, line); len(paths) > maxLines {
			return nil, fmt.Errorf("read %s: more than %d lines", name, maxLines)
		}
	}
}
