// Loaded into each file of tests before anything else: one that is left waiting by a failure ends all the same, and says so.
const minutes = 10

setTimeout(() => {
  process.stderr.write(`not ended after ${minutes} minutes: ${process.argv[1]}\n`)
  process.exit(1)
}, minutes * 60_000).unref()
