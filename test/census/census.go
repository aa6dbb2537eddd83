// Package census proves of a stage of the shuffle pool that each map is in its parts
// whole and once, whichever worker wrote it, and whatever happened meanwhile. Each record says
// of which map, by which attempt, and which it is.
package census

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

//go:embed worker.py
var worker string

// A Census is what workers do to a stage. It may be used concurrently.
type Census struct {
	Maps, Parts int
	Seed        uint64

	mu struct {
		sync.Mutex
		won map[int]uint32 // the attempt of each map
	}
}

// Work runs a worker, again and again when it is killed, until it has seen all maps. No
// two slots of a node are equal. Start returns a command that is not started yet, and
// running is called with each that was.
func (c *Census) Work(stage string, slot int, start func(name string, args ...string) *exec.Cmd, running func(*exec.Cmd)) error {
	for life := range 100 {
		var out, words strings.Builder
		cmd := start("python3", "-c", worker, stage, fmt.Sprint(c.Maps), fmt.Sprint(c.Parts), fmt.Sprint(c.Seed%(1<<40)), fmt.Sprint(slot), fmt.Sprint(life))
		cmd.Stdout, cmd.Stderr = &out, &words
		if err := cmd.Start(); err != nil {
			return err
		}
		running(cmd)
		err := cmd.Wait()
		if said := c.heard(out.String()); said != nil {
			return said
		}
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			continue
		}
		if err != nil {
			return fmt.Errorf("worker %d: %w: %s", slot, err, words.String())
		}
		return nil
	}
	return fmt.Errorf("worker %d was killed too often", slot)
}

// heard takes down what a worker saw.
func (c *Census) heard(text string) error {
	for line := range strings.Lines(text) {
		var number int
		var who uint32
		if _, err := fmt.Sscanf(line, "saw %d %d", &number, &who); err != nil || !strings.HasSuffix(line, "\n") {
			continue // it was killed while it said it
		}
		if err := c.wins(number, who); err != nil {
			return err
		}
	}
	return nil
}

// wins holds the stage to one winner of each map.
func (c *Census) wins(number int, who uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.won == nil {
		c.mu.won = make(map[int]uint32)
	}
	if was, ok := c.mu.won[number]; ok && was != who {
		return fmt.Errorf("map %d is by attempt %d, and was by %d", number, who, was)
	}
	c.mu.won[number] = who
	return nil
}

// count is how many records a map has for a part: none, the same few, or many; as in the
// worker.
func (c *Census) count(number, part int) int {
	switch {
	case number%11 == 3:
		return 0
	case number%7 == 5 && part == number%c.Parts:
		return 4000
	case number%7 == 5:
		return 0
	case number%8 == 1:
		return (number*7 + part*13) % 5 * 2000
	}
	return (number*7 + part*13) % 5 * 60
}

const recordBytes = 16

// Check holds the bytes of a part to what the maps have for it.
func (c *Census) Check(part int, b []byte) error {
	for number := range c.Maps {
		for n := range c.count(number, part) {
			if len(b) < recordBytes {
				return fmt.Errorf("part %d ends in map %d, at record %d", part, number, n)
			}
			field := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
			if field(0) != uint32(number) || field(2) != uint32(part) || field(3) != uint32(n) {
				return fmt.Errorf("part %d has record %d of part %d of map %d, where %d of map %d should be",
					part, field(3), field(2), field(0), n, number)
			}
			if err := c.wins(number, field(1)); err != nil {
				return fmt.Errorf("part %d: %w", part, err)
			}
			b = b[recordBytes:]
		}
	}
	if len(b) > 0 {
		return fmt.Errorf("part %d has %d bytes more than all maps", part, len(b))
	}
	return nil
}
