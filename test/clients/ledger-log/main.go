// Reads the log of an organization as the checksum database of Go is read, with the code of golang.org/x/mod: the checkpoint
// is signed, every entry is in the tree, and the tree of an earlier checkpoint is its beginning.
//
//	ledger-log PREFIX VKEY [EARLIER-SIZE EARLIER-ROOT]
//
// The token is in TOKEN. Prints size and root.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8

type tiles struct{ prefix string }

func (t tiles) get(path string) ([]byte, error) {
	req, err := http.NewRequest("GET", t.prefix+"/"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && res.StatusCode != 200 {
		err = fmt.Errorf("%s: %s: %s", path, res.Status, body)
	}
	return body, err
}

func (t tiles) Height() int { return height }

// pathOf leaves out the height, which c2sp.org/tlog-tiles has fixed.
func pathOf(tile tlog.Tile) string {
	path := strings.Replace(tile.Path(), fmt.Sprintf("tile/%d/", height), "tile/", 1)
	return strings.Replace(path, "tile/data/", "tile/entries/", 1)
}

func (t tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range wanted {
		body, err := t.get(pathOf(tile))
		if err != nil {
			return nil, err
		}
		all = append(all, body)
	}
	return all, nil
}

func (t tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func (t tiles) entries(size int64) (all [][]byte, err error) {
	for n := int64(0); n*256 < size; n++ {
		width := min(size-n*256, 256)
		body, err := t.get(pathOf(tlog.Tile{H: height, L: -1, N: n, W: int(width)}))
		if err != nil {
			return nil, err
		}
		for len(body) >= 2 {
			length := int(binary.BigEndian.Uint16(body))
			all = append(all, body[2:2+length])
			body = body[2+length:]
		}
	}
	return all, nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	log.SetFlags(0)
	reader := tiles{os.Args[1]}
	verifier, err := note.NewVerifier(os.Args[2])
	check(err)
	signed, err := reader.get("checkpoint")
	check(err)
	opened, err := note.Open(signed, note.VerifierList(verifier))
	check(err)
	lines := strings.Split(opened.Text, "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	check(err)
	root, err := tlog.ParseHash(lines[2])
	check(err)
	tree := tlog.Tree{N: size, Hash: root}
	hashes := tlog.TileHashReader(tree, reader)

	all, err := reader.entries(size)
	check(err)
	if int64(len(all)) != size {
		log.Fatalf("%d entries of %d", len(all), size)
	}
	for i, entry := range all {
		proof, err := tlog.ProveRecord(size, int64(i), hashes)
		check(err)
		check(tlog.CheckRecord(proof, size, root, int64(i), tlog.RecordHash(entry)))
	}
	if len(os.Args) > 3 {
		earlier, err := strconv.ParseInt(os.Args[3], 10, 64)
		check(err)
		earlierRoot, err := tlog.ParseHash(os.Args[4])
		check(err)
		proof, err := tlog.ProveTree(size, earlier, hashes)
		check(err)
		check(tlog.CheckTree(proof, size, root, earlier, earlierRoot))
	}
	fmt.Println(size, base64.StdEncoding.EncodeToString(root[:]))
}
