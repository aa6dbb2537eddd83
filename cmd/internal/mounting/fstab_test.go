package mounting

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"rankfs/cmd/internal/failure"
)

func TestParseHelper(t *testing.T) {
	base := DefaultOptions()
	with := func(change func(*Options)) Options { o := base; change(&o); return o }
	tests := []struct {
		name string
		args string
		want HelperCall
		bad  string
	}{
		{name: "least", args: "none /m", want: HelperCall{Dir: "/m", Options: base}},
		{name: "as mount(8) calls it", args: "none /m -o rw", want: HelperCall{Dir: "/m", Options: base}},
		{name: "flags together", args: "none /m -sfnv", want: HelperCall{Dir: "/m", Fake: true, sloppy: true, Verbose: true, Options: base}},
		{name: "flags first", args: "-v -t fuse.rankfs none /m", want: HelperCall{Dir: "/m", Verbose: true, Options: base}},
		{name: "value beside its flag", args: "none /m -nostate=/s", want: HelperCall{Dir: "/m", Options: with(func(o *Options) { o.State = "/s" })}},
		{name: "all of ours", args: "none /m -o state=/s,nvme=/n:1TiB,nvme=/m:2TiB,nvme-floor=9%,ram=1GiB,allow_other,private,admin-group=7,uid=1,gid=2,umask=077,log-level=warn",
			want: HelperCall{Dir: "/m", Options: Options{State: "/s", nvme: []string{"/n:1TiB", "/m:2TiB"}, nvmeFloor: "9%", ram: "1GiB", private: true, adminGroup: "7", uid: 1, gid: 2, umask: "077", logLevel: "warn"}}},
		{name: "all of theirs", args: "none /m -o defaults,ro,_netdev,nofail,noauto,user,nosuid,nodev,noexec,noatime,x-systemd.requires=/a,comment=x",
			want: HelperCall{Dir: "/m", Options: base}},
		{name: "quoted", args: `none /m -o state="/a,b",ro`, want: HelperCall{Dir: "/m", Options: with(func(o *Options) { o.State = "/a,b" })}},
		{name: "twice", args: `none /m -o ro -o uid=3`, want: HelperCall{Dir: "/m", Options: with(func(o *Options) { o.uid = 3 })}},
		{name: "sloppy", args: `none /m -s -o colour=blue,,,`, want: HelperCall{Dir: "/m", sloppy: true, Options: base}},
		{name: "no directory", args: "none", bad: "want SPEC and DIR"},
		{name: "three names", args: "a b c", bad: "want SPEC and DIR"},
		{name: "unknown option", args: "none /m -o colour=blue", bad: `option "colour=blue": there is no such option`},
		{name: "unknown flag", args: "none /m -z", bad: "no such option: -z"},
		{name: "flag without value", args: "none /m -o", bad: "-o needs a value"},
		{name: "namespace", args: "none /m -N /proc/1/ns/mnt", bad: "-N is not supported"},
		{name: "remount", args: "none /m -o remount", bad: `option "remount"`},
		{name: "value missing", args: "none /m -o state", bad: `option "state"`},
		{name: "value too many", args: "none /m -o allow_other=1", bad: `option "allow_other=1"`},
		{name: "relative", args: "none /m -o state=s", bad: "starts with /"},
		{name: "negative", args: "none /m -o uid=-1", bad: "use a number"},
		{name: "huge", args: "none /m -o gid=4294967296", bad: "use a number"},
		{name: "open quote", args: `none /m -o state="/a`, bad: "a quote is not closed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseHelper(strings.Fields(test.args))
			switch {
			case test.bad == "" && (err != nil || !reflect.DeepEqual(got, test.want)):
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			case test.bad != "" && (err == nil || !strings.Contains(err.Error(), test.bad)):
				t.Errorf("got %v, want %q", err, test.bad)
			case test.bad != "" && failure.ExitCode(err) != failure.ExitUsage:
				t.Errorf("exit code %d", failure.ExitCode(err))
			}
		})
	}
}

// What the helper accepts, its child must understand as the same.
func FuzzParseHelper(f *testing.F) {
	for _, s := range []string{"rw", "state=/a,nvme=/b:1TiB", `state="/a,b",uid=3,gid=4,umask=0`, "ram=1GiB,allow_other", "private,admin-group=7", "nvme=/a:b:2B,nvme=/c:1GiB,nvme-floor=7.5%,log-level=error", "nvme-floor=1GiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, options string) {
		call, err := ParseHelper([]string{"none", "/mnt", "-o", options})
		if err != nil {
			if failure.ExitCode(err) != failure.ExitUsage {
				t.Fatalf("%q: %v has exit code %d", options, err, failure.ExitCode(err))
			}
			return
		}
		o, dir, err := call.Options.Complete(call.Dir)
		if err != nil {
			return
		}
		want, err := o.Config(dir)
		if err != nil {
			t.Fatalf("%q: complete options are not valid: %v", options, err)
		}
		child, args := DefaultOptions(), o.args(dir)
		flags := pflag.NewFlagSet("mount", pflag.ContinueOnError)
		flags.Int("ready-fd", -1, "")
		child.Flags(flags)
		if err := flags.Parse(args[1:]); err != nil || flags.NArg() != 1 {
			t.Fatalf("%q: the child refuses %q: %v", options, args, err)
		}
		if got, err := child.Config(flags.Arg(0)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: the child of %q has %+v, %v, want %+v", options, args, got, err, want)
		}
	})
}
