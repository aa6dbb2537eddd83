// Package rpc has daemons of Hadoop do what its programs for administrators have them do.
// Such a program takes two seconds of a processor to begin.
package rpc
