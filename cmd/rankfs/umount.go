package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/mounts"
)

// goneTime is how long a daemon may take to end after its unmount: it gives
// its memory back, of which there may be much.
const goneTime = 30 * time.Second

func (p *program) umountCommand() *cobra.Command {
	var lazy bool
	c := &cobra.Command{
		Use:     "umount DIR",
		Aliases: []string{"unmount"},
		Short:   "Unmount DIR and wait for its daemon to end",
		Long: `Unmount DIR and wait for its daemon to end.

A mount whose daemon has died is detached, and what the daemon left is removed.`,
		Args: wants("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			done, err := p.unmount(c.Context(), args[0], lazy)
			if err != nil {
				return err
			}
			return p.print(done, func(w io.Writer) { writeUnmounted(w, done) })
		},
	}
	c.Flags().BoolVar(&lazy, "lazy", false, "detach it now, even if it is in use; it ends with its last user")
	return c
}

// unmount unmounts what is mounted at dir, and waits for its daemon.
func (p *program) unmount(ctx context.Context, dir string, lazy bool) (mounts.Unmounted, error) {
	late := fmt.Errorf("it has not ended after %v", goneTime)
	ctx, cancel := context.WithTimeoutCause(ctx, goneTime, late)
	defer cancel()
	done, err := mounts.Unmount(ctx, p.run, dir, lazy)
	if err != nil {
		err = explainUnmount(err, done)
	}
	return done, err
}

func explainUnmount(err error, done mounts.Unmounted) error {
	var busy *mounts.BusyError
	switch {
	case errors.As(err, &busy):
		return failure.Hint(err, "%s", holders(busy))
	case len(done.Elsewhere) > 0:
		return failure.Hint(err, "%s", namespaces(done))
	case done.Mount != "":
		return failure.Hint(err, "look at it with: ps -o pid,stat,wchan -p %d", done.PID)
	}
	return err
}

// holders says which processes keep a mount busy, and what to do about it.
func holders(e *mounts.BusyError) string {
	var b strings.Builder
	for _, h := range e.Holders {
		fmt.Fprintf(&b, "pid %d (%s): %s\n", h.PID, h.Name, strings.Join(h.Uses, ", "))
	}
	do := "stop these processes"
	switch {
	case len(e.Holders) == 0:
		do = "no process was found that has it open; try again"
	case e.More:
		b.WriteString("and others\n")
	}
	fmt.Fprintf(&b, "%s, or detach it with: rankfs umount --lazy %s", do, e.Mount)
	return b.String()
}

// namespaces says which processes still have a mount that is gone from here.
func namespaces(done mounts.Unmounted) string {
	var b strings.Builder
	for _, h := range done.Elsewhere {
		fmt.Fprintf(&b, "pid %d (%s) has a mount namespace with this mount in it\n", h.PID, h.Name)
	}
	fmt.Fprintf(&b, "stop it, or unmount it there: nsenter -m -t %d umount %s", done.Elsewhere[0].PID, done.Mount)
	return b.String()
}

func writeUnmounted(w io.Writer, done mounts.Unmounted) {
	switch {
	case done.Stale:
		fmt.Fprintf(w, "unmounted %s, whose daemon had died\n", done.Mount)
	case done.Lazy:
		fmt.Fprintf(w, "detached %s; it ends with its last user\n", done.Mount)
	default:
		fmt.Fprintf(w, "unmounted %s\n", done.Mount)
	}
}
