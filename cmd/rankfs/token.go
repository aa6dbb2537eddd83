package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

func (p *program) tokenCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Let other nodes into the cluster",
		Args:  noSuchCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	p.mountFlag(c)
	c.AddCommand(p.createTokenCommand())
	return c
}

func (p *program) createTokenCommand() *cobra.Command {
	var r control.TokenRequest
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a token that lets nodes into the cluster",
		Long: `Make a token that lets nodes into the cluster of this mount.

The token is a secret until it is used up or expires. It is written to stdout
alone, if that is not a terminal:

  rankfs token create | ssh node2 'umask 077; cat > /run/rankfs.token'`,
		Args: wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			if r.Life <= 0 || r.Uses <= 0 {
				return usage(c, fmt.Errorf("a token of %v and %s %w: both must be more than nothing",
					r.Life, plural(r.Uses, "use"), meta.ErrInvalid))
			}
			d, err := p.daemon()
			if err != nil {
				return err
			}
			t, err := d.CreateToken(c.Context(), r)
			if err != nil {
				return err
			}
			if h, _, _ := net.SplitHostPort(t.Join); isLoopback(h) {
				fmt.Fprintf(p.err, "WARNING: %s\n", wrap(fmt.Sprintf("this node listens on loopback only (%s), where no other host reaches it; "+
					"mount it again with --listen HOST:PORT, by its own name", t.Join), 71, "  "))
			}
			return p.print(t, func(w io.Writer) { writeToken(w, t, p.now()) })
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.DurationVar(&r.Life, "life", time.Hour, "let nodes in for so long: `TIME`, as 30m or 2h")
	f.IntVar(&r.Uses, "uses", 1, "let `N` nodes in")
	return c
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func writeToken(w io.Writer, t control.Token, now time.Time) {
	fmt.Fprintln(w, t.Token)
	if !isTerminal(w) {
		return
	}
	who := "one node"
	if t.Uses != 1 {
		who = plural(t.Uses, "node")
	}
	fmt.Fprintf(w, "\n%s\n\n  rankfs mount DIR --listen HOST:PORT --join %s --token-file FILE\n\n"+
		"HOST:PORT is where that node is reached by the others.\n",
		wrap(fmt.Sprintf("It lets in %s, for %s. There, put it into a FILE that only root can read, and:",
			who, span(t.Expires.Sub(now))), 79, ""), t.Join)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
