package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

// TokenCommands are the commands below rankfs token.
type tokenCommands struct{ *program }

func (p *program) tokenCommand() *cobra.Command {
	g := tokenCommands{p}
	return p.group(&cobra.Command{Use: "token", Short: "Let other nodes into the cluster, look at tokens, drop them"},
		g.create(), g.list(), g.remove())
}

func (p tokenCommands) create() *cobra.Command {
	var r control.TokenRequest
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a token that lets nodes into the cluster",
		Long: `Make a token that lets nodes into the cluster of this mount.

The token is a secret until it is used up or expires. It is written to stdout
alone, if that is not a terminal:

  rankfs token create | ssh node2 'umask 077; cat > /run/rankfs.token'

A node that is let in as a member reads, and may register and refresh datasets;
one that is let in as an operator may also let others in, drain and remove
nodes, remove datasets and change settings of the cluster. Tokens are made on
an operator, as the first node is.`,
		Args: wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			if r.Role != "member" && r.Role != "operator" {
				return usage(c, fmt.Errorf("role %q %w: use member or operator", r.Role, meta.ErrInvalid))
			}
			if r.Life <= 0 || r.Uses <= 0 {
				return usage(c, fmt.Errorf("a token of %s and %s %w: both must be more than nothing",
					meta.FormatTime(r.Life), terminal.Plural(r.Uses, "use"), meta.ErrInvalid))
			}
			return answer(c, p, func(d *control.Client, ctx context.Context) (control.Token, error) {
				t, err := d.CreateToken(ctx, r)
				if h, _, _ := net.SplitHostPort(t.Join); err == nil && isLoopback(h) {
					fmt.Fprintf(p.err, "WARNING: %s\n", terminal.Wrap(fmt.Sprintf("this node listens on loopback only (%s), where no other host reaches it; "+
						"mount it again with --listen HOST:PORT, by its own name", t.Join), 71, "  "))
				}
				return t, err
			}, func(w io.Writer, t control.Token) { writeToken(w, t, p.now()) })
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.DurationVar(&r.Life, "life", time.Hour, "let nodes in for so long: `TIME`, as 30m or 2h")
	f.Lookup("life").DefValue = meta.FormatTime(time.Hour)
	f.IntVar(&r.Uses, "uses", 1, "let `N` nodes in")
	f.StringVar(&r.Role, "role", "member", "let them in as `ROLE`: member or operator")
	return c
}

func (p tokenCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the tokens that still let nodes in",
		Args:    wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			return answer(c, p, (*control.Client).Tokens, writeTokens)
		},
	}
}

func writeTokens(w io.Writer, list []control.TokenInfo) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no tokens; make one with: rankfs token create")
		return
	}
	t := terminal.NewTable("", "TOKEN", "ROLE", " USED", "MADE ON", "EXPIRES")
	for _, k := range list {
		t.Add(k.ID, orDash(k.Role), fmt.Sprintf("%d of %d", k.Used, k.Uses), orDash(k.Host), k.Expires.UTC().Format("2006-01-02 15:04 UTC"))
	}
	t.Write(w)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (p tokenCommands) remove() *cobra.Command {
	return &cobra.Command{
		Use:     "rm TOKEN",
		Aliases: []string{"remove"},
		Short:   "Have a token let no more nodes in",
		Long: `Have a token let no more nodes in. Those that it has let in stay.

TOKEN is its id, as rankfs token ls has it, or the beginning of that.`,
		Args: wants("TOKEN"),
		RunE: func(c *cobra.Command, args []string) error {
			return removed(c, p, args[0], (*control.Client).DropToken, func(w io.Writer) {
				fmt.Fprintf(w, "token %s lets no more nodes in; take out those that it let in with: rankfs node rm\n", args[0])
			})
		},
	}
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
		who = terminal.Plural(t.Uses, "node")
	}
	if t.Role == "operator" {
		who += " as an operator"
	}
	fmt.Fprintf(w, "\n%s\n\n  rankfs mount DIR --listen HOST:PORT --join %s --token-file FILE\n\n"+
		"HOST:PORT is where that node is reached by the others.\n",
		terminal.Wrap(fmt.Sprintf("It lets in %s, for %s. There, put it into a FILE that only root can read, and:",
			who, terminal.Span(t.Expires.Sub(now))), 79, ""), t.Join)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
