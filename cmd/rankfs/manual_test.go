package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankfs/cmd/internal/mounting"
)

// manual is the manual page as it is typed: words without fonts.
func manual(t *testing.T) string {
	page, err := os.ReadFile("../../docs/rankfs.8")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`\\f[A-Z]|"`).ReplaceAllString(strings.ReplaceAll(string(page), `\-`, "-"), "")
}

// section is what the manual has below the headings that match.
func section(page, heading string) (text string) {
	for part := range strings.SplitSeq(page, "\n.S") {
		if title, body, _ := strings.Cut(part, "\n"); regexp.MustCompile(heading).MatchString(title) {
			text += body
		}
	}
	return text
}

// flagsOf are the options that the help of a command shows.
func flagsOf(c *cobra.Command) (names []string) {
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && f.Name != "mount" {
			names = append(names, f.Name)
		}
	})
	return names
}

// The manual tells of each option where it tells of its command.
func TestOptionsAreInTheManual(t *testing.T) {
	page := manual(t)
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			look(sub)
		}
		names := flagsOf(c)
		if len(names) == 0 || c.Parent() == nil {
			return
		}
		text := section(page, `S rankfs .*\b`+c.Name()+`\b`)
		if strings.Contains(text, "rankfs "+c.Name()+" --help") {
			return // it sends its reader there
		}
		for _, name := range names {
			if !regexp.MustCompile(`--` + name + `\b`).MatchString(text) {
				t.Errorf("%s: --%s is not in its section", c.CommandPath(), name)
			}
		}
	}
	look((&program{}).root())
}

// An option of a mount is in the help, in the completions, in both places of the manual,
// and the helper takes it: all but those that make no sense in fstab.
func TestOptionsOfAMountAreEverywhere(t *testing.T) {
	notInTab := []string{"background", "token"}
	var out bytes.Buffer
	p := &program{out: &out, err: &out}
	p.root()
	c, _, err := p.root().Find([]string{"mount"})
	if err != nil {
		t.Fatal(err)
	}
	tab := section(manual(t), "MOUNT HELPER")
	run(t.Context(), []string{"rankfs", "__complete", "mount", "--"}, p)
	completed := out.String()
	for _, name := range flagsOf(c) {
		if !strings.Contains(completed, "--"+name+"\t") && !strings.Contains(completed, "--"+name+"\n") {
			t.Errorf("--%s is not completed", name)
		}
		option, flag := name, c.Flags().Lookup(name)
		if flag.Value.Type() != "bool" {
			option += "="
		}
		_, err := mounting.ParseHelper([]string{"none", "/m", "-o", option + map[string]string{"string": "/1", "stringArray": "/1:1GiB", "uint32": "1"}[flag.Value.Type()]})
		inTab := regexp.MustCompile(`(?m)(^|[ \n,])(\.B )?` + option + `(\s|$)`).MatchString(tab)
		switch want := !slices.Contains(notInTab, name); {
		case (err == nil) != want:
			t.Errorf("the helper says to %s: %v", option, err)
		case inTab != want:
			t.Errorf("%s among the manual's options of the helper: %v", option, inTab)
		}
	}
}
