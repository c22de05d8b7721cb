import { exitCodes } from '../framework/cli-error.ts'
import type { Command, Commands } from '../framework/command.ts'
import { size } from '../framework/plain-text.ts'
import { configOf, quietConfigOf, settingOptions } from '../framework/settings.ts'
import { requireStopped } from './stopped.ts'

/** The most damaged contents that are named. */
const mostNamed = 20

const copy: Command = {
  details: `Servers may run meanwhile, with the first of the two. What is there already is not copied again, so run it once more
with --switch when all servers are stopped, which takes a moment: it copies what has come since and makes the second the
one of the database. Then start the servers with the second as their --blobs. Each content is verified.`,
  arguments: [
    { name: '<from>', summary: 'What the server has as its --blobs' },
    { name: '<to>', summary: 'A folder or a bucket, spelled in the same way' },
  ],
  options: [
    ...settingOptions('data', 'database'),
    { flags: '--switch', summary: 'Make the second place that of the database; all servers must be stopped' },
  ],
  async run(terminal, options) {
    const config = configOf(terminal, { ...options, blobs: String(options.from) })
    const target = quietConfigOf(terminal.env, { ...options, blobs: String(options.to) })
    const { copyBlobs, openCopy, switchBlobs } = await import('#maintenance/copy-blobs.ts')
    await using opened = new AsyncDisposableStack()
    const { db, from, to } = opened.adopt(await openCopy(config, target.blobs), (one) => one.close())
    const stopped = options.switch && opened.adopt(await requireStopped(db, config), (one) => one.release())
    const report = ({ contents, bytes }: { contents: number; bytes: number }) =>
      terminal.status?.(`${contents} blobs, ${size(bytes)} …`)
    const { contents, bytes, there, damaged } = await copyBlobs(db, from, to, report)
    terminal.status?.('')
    terminal.print(`copied ${contents} blobs with ${size(bytes)}; ${there} were there already`)
    for (const location of damaged.slice(0, mostNamed)) terminal.say(`damaged or lost, and not copied: ${location}`)
    if (damaged.length > 0) {
      const left = stopped ? '; the database keeps that place' : ''
      terminal.say(`pinfold: ${damaged.length} blobs are damaged or lost in ${options.from}${left}`)
      return exitCodes.failed
    }
    if (stopped) {
      await stopped.tx((tx) => switchBlobs(tx, to))
      terminal.print(`the blobs of the database are in ${options.to} from now on; start the servers with it as --blobs`)
    }
    return exitCodes.ok
  },
}

export const blobs: Commands = { copy }
