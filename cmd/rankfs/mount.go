package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankfs/cache/policy"
)

// A mounted is what mount says when the mount is ready.
type mounted struct {
	Mount string `json:"mount"`
	PID   int    `json:"pid"`
	State string `json:"state_dir"`
	Log   string `json:"log,omitempty"` // where a background daemon writes
}

func (m mounted) text(w io.Writer) {
	fmt.Fprintf(w, "mounted %s (pid %d)\n", m.Mount, m.PID)
}

func (p *program) mountCommand() *cobra.Command {
	o := defaultMountOptions()
	var background bool
	var ready int
	c := &cobra.Command{
		Use:   "mount DIR",
		Short: "Mount on DIR and serve it until it is unmounted",
		Long: `Mount on DIR and serve it until it is unmounted or the command is stopped.

DIR must exist. A mount whose daemon has died is replaced; one that was killed
and has not ended yet is waited for.

Only root can mount. All users of the machine may then read, as --umask permits,
and look at everything by rankfs status and the like; to change something is for
root, and for the members of --admin-group.`,
		Args: wants("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			o, dir, err := o.complete(args[0])
			if err != nil {
				return usage(c, err)
			}
			if err := mayMount(dir); err != nil {
				return err
			}
			if background {
				m, err := p.mountBehind(c.Context(), o, dir)
				if err != nil {
					return err
				}
				return p.print(m, m.text)
			}
			return p.mountHere(c.Context(), o, dir, ready)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&background, "background", false, "return when the mount is ready")
	o.flags(f)
	f.IntVar(&ready, "ready-fd", -1, "tell the parent of a background mount how it went")
	_ = f.MarkHidden("ready-fd")
	return c
}

// flags lets o be set by flags.
func (o *mountOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.state, "state", "", "keep indexes and the log in `DIR` (default one in "+stateRoot+", named for the mount point)")
	f.StringArrayVar(&o.nvme, "nvme", nil, "keep batches that leave memory on a disk: `DIR:SIZE`, as /nvme/rankfs:200GiB; once for each disk")
	f.StringVar(&o.nvmeFloor, "nvme-floor", o.nvmeFloor, "leave `SIZE` or N% of each of those disks free")
	f.StringVar(&o.ram, "ram", "", "keep batches in memory up to `SIZE`, as 16GiB (default a quarter of the memory)")
	f.StringVar(&o.cachePolicy, "cache-policy", "", "decide what is kept by the policy `NAME`, one of "+strings.Join(policy.Names(), ", ")+" (default "+policy.Names()[0]+")")
	f.BoolVar(&o.private, "private", false, "let no other user read the mount, or ask its daemon")
	f.StringVar(&o.adminGroup, "admin-group", "", "let members of `GROUP` change what only root may change otherwise")
	f.Bool("allow-other", false, "")
	_ = f.MarkHidden("allow-other") // it was needed once, and stands in scripts
	f.Uint32Var(&o.uid, "uid", o.uid, "user `ID` that owns all files (default: who mounts)")
	f.Uint32Var(&o.gid, "gid", o.gid, "group `ID` of all files (default: that of who mounts)")
	f.StringVar(&o.umask, "umask", o.umask, "`MODE` bits that no file has, in octal")
	f.StringVar(&o.hadoopConf, "hadoop-conf", o.hadoopConf, "read how to reach HDFS from the files in `DIR` (default $HADOOP_CONF_DIR)")
	f.StringVar(&o.hdfsUser, "hdfs-user", "", "be `USER` in an HDFS without Kerberos (default: who mounts)")
	o.login.flags(f)
	o.cluster.flags(f)
	f.StringVar(&o.logLevel, "log-level", o.logLevel, "write messages from `LEVEL` on: debug, info, warn, error")
	f.BoolVar(&o.noPassthrough, "no-passthrough", false, "let the daemon serve all reads, to compare")
	_ = f.MarkHidden("no-passthrough")
}

// mountHere serves the mount in this process. With a ready descriptor, it is
// the child of a background mount.
func (p *program) mountHere(ctx context.Context, o mountOptions, dir string, readyFD int) error {
	tell := newTeller(readyFD)
	err := p.serveMount(ctx, o, dir, func() {
		notify("READY=1")
		if !tell.ready() {
			m := mounted{Mount: dir, PID: os.Getpid(), State: o.state}
			_ = p.print(m, m.text)
		}
	})
	tell.failed(err)
	return err
}

func (p *program) serveMount(ctx context.Context, o mountOptions, dir string, ready func()) error {
	config, err := o.config(dir)
	if err != nil {
		return err
	}
	level, err := o.level()
	if err != nil {
		return err
	}
	config.RunDir = p.run
	config.Log = slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: level}))
	defer notify("STOPPING=1")
	return p.serve(ctx, config, ready)
}
