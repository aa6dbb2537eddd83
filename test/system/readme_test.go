package system_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rankfs/test/readme"
)

// A reader types what README says: lines with sudo as root, all others as a
// user. /mnt and /data are directories of the test; commands in its bin come
// before those of the machine.
type reader struct {
	person
	*node
	bin string
}

func newReader(t *testing.T) reader {
	t.Helper()
	r := reader{newPerson(t, 65534, 65534), newNode(t), ""}
	r.bin = filepath.Join(r.dir, "bin")
	must(t, os.Mkdir(r.bin, 0o755))
	must(t, os.Remove(r.mount))                                                 // README makes it
	t.Cleanup(func() { tryCommand(rankfs, "--run", r.run, "umount", r.mount) }) // of a test that fails before README does it
	r.script("rankfs", fmt.Sprintf(`case $1 in mount) exec %s --run %s "$@" --state %s --ram 64MiB;; esac; exec %s --run %[2]s "$@"`, rankfs, r.run, r.state, commands))
	return r
}

func (r reader) script(name, text string) {
	r.person.t.Helper()
	must(r.person.t, os.WriteFile(filepath.Join(r.bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
}

// program puts a program of the tests where the user has it.
func (r reader) program(from, name string) {
	r.person.t.Helper()
	data, err := os.ReadFile(from)
	must(r.person.t, err)
	must(r.person.t, os.WriteFile(filepath.Join(r.home, name), data, 0o755))
}

// types runs one line and returns what it prints.
func (r reader) types(line string) string {
	r.person.t.Helper()
	line = strings.NewReplacer("/mnt/rankfs", r.mount, "/data/", r.dir+"/data/").Replace(line)
	var got result
	if root, ok := strings.CutPrefix(line, "sudo "); ok {
		got = command(r.person.t, "sh", "-euc", "export PATH="+r.bin+":$PATH; "+root)
	} else {
		got = r.does("sh", "-euc", "export PATH="+r.bin+":$PATH; "+line)
	}
	if got.code != 0 {
		r.person.t.Fatalf("%s: %v", line, got)
	}
	return got.out
}

// images puts an LMDB of 3000 records where README has one, and returns a file of
// their checksums.
func (r reader) images(t *testing.T) (sums string) {
	t.Helper()
	images, sums := corpus(t, "datum", 3000)
	must(t, os.Mkdir(filepath.Join(r.dir, "data"), 0o755))
	must(t, os.Rename(images, filepath.Join(r.dir, "data", "train")))
	return sums
}

// session types the lines of a recipe, which must print all that is wanted.
func (r reader) session(recipe string, wants ...string) {
	t := r.person.t
	t.Helper()
	all := ""
	for _, line := range readme.Lines(t, recipe) {
		all += r.types(line)
	}
	for _, want := range wants {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in what README's lines print:\n%s", want, all)
		}
	}
}

// TestReadmeMPI types the session of README. What stands in: mpirun is that of
// the tests, which needs no network, and ./train a program that verifies each
// byte that its ranks map.
func TestReadmeMPI(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	sums := r.images(t)
	r.program(programs+"run", "run")
	r.program(programs+"bin/map_verify", "map_verify")
	r.program(sums, "sums")
	r.script("mpirun", `case $1 in -np) shift; exec ./run "$@";; esac; exec /usr/bin/mpirun "$@"`)
	must(t, os.WriteFile(filepath.Join(r.home, "train"), []byte("#!/bin/sh\nexec ./map_verify -d -m -r \"$1\" sums\n"), 0o755))
	r.session("MPI with an LMDB", "batch-000000\n", "OK ranks=4 ", " records=3000 ", "opened ")
}

// TestReadmePython runs the lines of Python, for two ranks, with Debian's Python
// and its numpy.
func TestReadmePython(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	s := newLines(t, 400)
	r.types("sudo mkdir -p /mnt/rankfs")
	r.types("sudo rankfs mount /mnt/rankfs --background")
	r.types("sudo rankfs dataset create train --source " + s.uri + " --ranks 2 --batch 40 --order full --tail drop")
	text := strings.ReplaceAll(readme.Block(t, "Python with numpy alone"), "/mnt/rankfs", r.mount)
	must(t, os.WriteFile(filepath.Join(r.home, "epoch.py"), []byte(text), 0o755))
	for rank := range 2 {
		got := r.types(fmt.Sprintf("RANK=%d /usr/bin/python3 epoch.py", rank))
		if n := strings.Count(got, " 40 records "); n != 5 {
			t.Errorf("rank %d: %d batches of 40 records, want 5:\n%s", rank, n, got)
		}
	}
}

// TestReadmeSlurm types the lines. What stands in: systemctl runs what the unit of
// docs has, with the options that the line's remark says, as systemd would; srun runs
// the ranks one after the other with the variables that Slurm sets; ./train copies its
// batches. slurm.conf is not asked.
func TestReadmeSlurm(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	r.images(t)
	r.systemctl(readme.Block(t, "Slurm:"))
	r.script("srun", `n=$2; shift 2; i=0
while [ $i -lt $n ]; do SLURM_NTASKS=$n SLURM_PROCID=$i "$@"; i=$((i+1)); done`)
	must(t, os.WriteFile(filepath.Join(r.home, "train"), []byte("#!/bin/sh\ncat \"$1\"/batch-?????? | wc -c\n"), 0o755))
	r.session("Slurm:", "3,000 records", "4 here of 4", "opened   48 batches", " 0 errors")
}

// systemctl runs the unit's commands for /mnt/rankfs: the options are those that the
// recipe has beside systemctl edit, but for the memory, which is the test's.
func (r reader) systemctl(recipe string) {
	t := r.person.t
	t.Helper()
	options := regexp.MustCompile(`systemctl edit .*# \[Service\] and below it Environment="OPTIONS=(.*)"`).FindStringSubmatch(recipe)
	unit, err := os.ReadFile("../../docs/rankfs@.service")
	must(t, err)
	start := regexp.MustCompile(`(?m)^(ExecStartPre|ExecStart)=(.*)$`).FindAllStringSubmatch(string(unit), -1)
	if options == nil || len(start) != 2 {
		t.Fatalf("the recipe edits %q, and the unit starts %q", options, start)
	}
	var lines []string
	for _, command := range start {
		lines = append(lines, strings.NewReplacer("$OPTIONS", options[1], "%f", r.mount, "/usr/local/bin/", "").Replace(command[2]))
	}
	r.script("systemctl", fmt.Sprintf(`case $1 in
edit) exit 0;;
enable) [ "$2 $3" = "--now rankfs@mnt-rankfs" ] || exit 1;;
*) exit 1;;
esac
%s
setsid %s >%s/daemon.log 2>&1 &
until mountpoint -q %s; do kill -0 $! && sleep 0.05; done`, lines[0], lines[1], r.dir, r.mount))
}

// TestReadmeContainers types the lines. What stands in: docker is a mount namespace that
// has the bound directory as the options say, and nothing else of a container. The mount
// is made after it was started, and once more; what is read in it is what the host reads.
func TestReadmeContainers(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	r.images(t)
	r.docker()
	must(t, os.WriteFile(filepath.Join(r.dir, "train"), []byte("#!/bin/sh\ncat \"$1\"/batch-?????? >read\n"), 0o755))
	var script strings.Builder
	for _, line := range readme.Lines(t, "Containers:") {
		line = strings.NewReplacer("sudo ", "", "/mnt", r.dir+"/mnt", "/data/", r.dir+"/data/").Replace(line)
		fmt.Fprintln(&script, line)
		if _, rank, ok := strings.Cut(line, "./train "); ok {
			fmt.Fprintf(&script, "cat %s/batch-?????? | cmp - read; wc -c <read; rm read\n", rank)
		}
	}
	out := sh(t, `
		alone sh -euc '
			top=$1 PATH=$2:$PATH
			mkdir -p $top/mnt && mount -t tmpfs rankfs-test $top/mnt && mount --make-shared $top/mnt
			trap "{ docker rm -f job; rankfs umount $top/mnt/rankfs; } >/dev/null 2>&1 || :" EXIT
			cd $top
			eval "$3"' sh "$@"`, r.dir, r.bin, script.String())
	if read := regexp.MustCompile(`(?m)^[1-9][0-9]+$`).FindAllString(out, -1); len(read) != 2 {
		t.Errorf("the container read of two ranks %q bytes:\n%s", read, out)
	}
}

// docker makes the stand-in of TestReadmeContainers, which ends by itself if the test
// does not end it.
func (r reader) docker() {
	r.script("docker", fmt.Sprintf(`pid=%s/container
case $1 in
run)
	[ "$2 $3 $4 $5" = "-d --name job -v" ] || exit 2
	case $6 in *:ro,rslave) kind=slave;; *:ro) kind=private;; *) exit 2;; esac
	shift 7
	setsid timeout 600 unshare -m --propagation $kind sh -c 'echo $$ >"$0"; exec "$@"' $pid "$@" </dev/null >/dev/null 2>&1 &
	until [ -s $pid ]; do kill -0 $! && sleep 0.05; done;;
exec)
	[ $2 = job ] || exit 2
	shift 2
	exec nsenter -t $(cat $pid) -m sh -c 'cd "$0" && exec "$@"' "$PWD" "$@";;
rm)
	[ "$2 $3" = "-f job" ] || exit 2
	kill $(cat $pid) && rm $pid;;
*) exit 2;;
esac`, r.dir))
}
