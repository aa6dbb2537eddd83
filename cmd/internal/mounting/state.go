package mounting

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// stateRoot holds the state directories of mounts that were not given one, by their mount points.
const stateRoot = "/var/lib/rankfs"

// escapePath makes one file name of a path, as systemd-escape does: readable,
// and different for different paths.
func escapePath(path string) string {
	path = strings.Trim(path, "/")
	if path == "" {
		return "-"
	}
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		plain := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == ':' || c == '.' && i > 0
		switch {
		case c == '/':
			b.WriteByte('-')
		case plain:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	if b.Len() > 255 { // NAME_MAX
		return fmt.Sprintf("%x", sha256.Sum256([]byte(path)))
	}
	return b.String()
}
