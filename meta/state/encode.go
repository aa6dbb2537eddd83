package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"rankfs/meta"
)

// MaxCommand is a plan of MaxRanks ranks, no two neighbours on one node.
const MaxCommand = 24 << 20

// Encode is the form of a command in the log: its version, its kind, and JSON.
// It refuses what no machine would accept.
func Encode(c Command) ([]byte, error) {
	version, err := versionOf(c)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write([]byte{byte(version), byte(known.of(c).kind)})
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("command %w: %w", meta.ErrInvalid, err)
	}
	if b.Len() > MaxCommand {
		return nil, fmt.Errorf("command of %d bytes %w: the most is %d", b.Len(), meta.ErrInvalid, MaxCommand)
	}
	return b.Bytes(), nil
}

// decodeUpTo reads a command, of that version at most.
func decodeUpTo(newest int, data []byte) (Command, error) {
	if len(data) < 2 || len(data) > MaxCommand {
		return nil, fmt.Errorf("command of %d bytes %w", len(data), meta.ErrCorrupt)
	}
	version, k := int(data[0]), known.kinds[kind(data[1])]
	if err := canRead(version, Oldest, newest); err != nil {
		return nil, fmt.Errorf("command %w", err)
	}
	if k.blank == nil {
		return nil, meta.Worded(meta.ErrUnavailable, "command of kind %d is not known to this release: %s", data[1], upgrade)
	}
	c, d := k.blank(), json.NewDecoder(bytes.NewReader(data[2:]))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, meta.Worded(meta.ErrCorrupt, "command of kind %d is corrupt or of a later release: upgrade rankfs on this node: %w",
			data[1], err)
	}
	if rest := data[2+d.InputOffset():]; len(bytes.TrimSpace(rest)) != 0 {
		return nil, fmt.Errorf("command of kind %d %w: %d bytes follow it", data[1], meta.ErrCorrupt, len(rest))
	}
	c.entry().version = version
	if says, err := versionOf(c); err != nil || says != version {
		return nil, fmt.Errorf("command of kind %d %w: it is not of version %d", data[1], meta.ErrCorrupt, version)
	}
	return c, nil
}

// versionOf is the version that a command is of. It refuses one that has
// something that its version does not know, or lacks what that has.
func versionOf(c Command) (int, error) {
	if u, ok := c.(*Upgrade); ok {
		return max(u.To, Signed), nil
	}
	said := versionSaid(c)
	if needs := max(versionNeeded(c), known.of(c).since); needs > said {
		return 0, meta.Worded(meta.ErrInvalid, "command of version %d cannot be given before all nodes are of this release; see: rankfs node ls", needs)
	}
	if said >= Signed && c.entry().By == "" {
		return 0, fmt.Errorf("command of version %d %w: it has no sender", said, meta.ErrInvalid)
	}
	return said, nil
}
