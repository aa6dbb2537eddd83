package hadoop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Folder finds this folder in the checkout that the working directory is in.
func Folder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		folder := filepath.Join(dir, "test", "hadoop")
		if _, err := os.Stat(filepath.Join(folder, "pom.xml")); err == nil {
			return folder, nil
		}
	}
	return "", errors.New("find test/hadoop/pom.xml: not in a checkout of rankfs; change into one")
}

// A Home has the jars and our programs.
type Home string

// Prepare makes the home, which is done once for each state of this folder.
func Prepare(ctx context.Context) (Home, error) {
	folder, err := Folder()
	if err != nil {
		return "", err
	}
	prepare := filepath.Join(folder, "prepare")
	if out, err := exec.CommandContext(ctx, prepare).CombinedOutput(); err != nil {
		return "", fmt.Errorf("run %s: %w: %s", prepare, err, out)
	}
	return Home(filepath.Join(folder, "build")), nil
}

// The first compiler alone is enough for programs that mostly call sendfile(2)
// or do one thing once; it costs a third of the memory and of the start. The archive of
// classes is where it was made for: elsewhere all of it is written to, for 0.12 s.
var (
	DaemonOptions = append([]string{"-Xms48m", "-Dhadoop.root.logger=INFO,console"}, small...)
	ToolOptions   = append([]string{"-Dhadoop.root.logger=WARN,console"}, small...)
	small         = []string{"-XX:+UseSerialGC", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0"}
	// SpeedOptions do justice to a program that is measured.
	SpeedOptions = []string{"-Xms512m", "-Xmx1g", "-XX:+UseParallelGC", "-Dhadoop.root.logger=WARN,console"}
)

// Native is the option by which a program finds Hadoop's native library.
func (h Home) Native() string {
	return "-Djava.library.path=" + filepath.Join(string(h), "native", "nativelib", "Linux-"+runtime.GOARCH)
}

// Line is the command line of a Java program. Conf is a folder with
// core-site.xml and the rest, or empty for the defaults.
func (h Home) Line(conf string, options []string, class string, args ...string) []string {
	path := filepath.Join(string(h), "programs.jar") // which names the others
	if conf != "" {
		path += ":" + conf
	}
	line := []string{"java", "@" + filepath.Join(string(h), "options"), "-cp", path}
	line = append(line, options...)
	return append(append(line, class), args...)
}
