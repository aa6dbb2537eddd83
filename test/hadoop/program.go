package hadoop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

// A Program is one of ours that runs and takes orders, a line of JSON each.
type Program struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *json.Decoder
}

// Start starts a program where the caller is, without any cluster, and with Hadoop's
// native library, which alone has Zstandard.
func Start(ctx context.Context, class string) (*Program, error) {
	home, err := Prepare(ctx)
	if err != nil {
		return nil, err
	}
	line := home.Line("", append(slices.Clone(ToolOptions), home.Native()), class)
	return StartCommand(exec.CommandContext(ctx, line[0], line[1:]...))
}

// StartCommand starts a program that was made ready to run somewhere else.
func StartCommand(c *exec.Cmd) (*Program, error) {
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return &Program{c, in, json.NewDecoder(out)}, nil
}

// Ask gives the program an order and fills in its answer. The context that the
// command was made with bounds the wait.
func (p *Program) Ask(order, answer any) error {
	line, err := json.Marshal(order)
	if err != nil {
		return err
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		return err
	}
	var raw json.RawMessage
	if err := p.out.Decode(&raw); err != nil {
		return fmt.Errorf("read the answer to %s: %w", line, err)
	}
	var refusal struct{ Error string }
	if err := json.Unmarshal(raw, &refusal); err != nil {
		return err
	}
	if refusal.Error != "" {
		return fmt.Errorf("%s: %s", line, refusal.Error)
	}
	return json.Unmarshal(raw, answer)
}

// Close ends the program.
func (p *Program) Close() error { return errors.Join(p.stdin.Close(), p.cmd.Wait()) }

// ReadOrder is an order to Read.
type ReadOrder struct {
	Ranges  []Range `json:"ranges"`
	Threads int     `json:"threads"`
	Warmups int     `json:"warmups,omitempty"` // passes before the measured one
	Buffer  int     `json:"buffer,omitempty"`  // bytes
}

// A Range is part of a file; a length below 0 is all of the rest.
type Range struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
}

// ReadAnswer has the figures that Read measured: seconds, those of CPU in hundredths.
type ReadAnswer struct {
	Bytes int64
	Wall  float64
	CPU   float64
}
