import { size } from '#lib/terminal/plain-text.ts'
import { exitCodes } from '../framework/cli-error.ts'
import type { Command, Commands } from '../framework/command.ts'
import { configOf, quietConfigOf, settingOptions } from '../framework/settings.ts'
import { requireStopped } from './stopped.ts'

/** Maximum number of damaged contents that are listed. */
const mostNamed = 20

const copy: Command = {
  details: `Verifies each blob that it copies, and copies no blob twice.
1. Run the command while the servers run with <from>.
2. Stop all servers, and run it again with --switch. It copies the blobs that are new, and connects the database with <to>.
3. Start the servers with <to> as their --blobs.`,
  arguments: [
    { name: '<from>', summary: 'Present value of --blobs: a folder or a bucket' },
    { name: '<to>', summary: 'New folder or bucket, in the same form' },
  ],
  options: [
    ...settingOptions('data', 'database'),
    { flags: '--switch', summary: 'Connect the database with <to> after copying; all servers must be stopped' },
  ],
  async run(terminal, options) {
    const config = configOf(terminal, { ...options, blobs: String(options.from) })
    const target = quietConfigOf(terminal.env, { ...options, blobs: String(options.to) })
    const { copyBlobs, openCopy, switchBlobStore } = await import('#maintenance/copy-blobs.ts')
    await using opened = new AsyncDisposableStack()
    const { db, from, to } = opened.adopt(await openCopy(config, target.blobs), (one) => one.close())
    const stopped = options.switch && opened.adopt(await requireStopped(db, config), (one) => one.release())
    const report = ({ contents, bytes }: { contents: number; bytes: number }) =>
      terminal.status?.(`${contents} blobs, ${size(bytes)} …`)
    const { contents, bytes, there, damaged } = await copyBlobs(db, from, to, report)
    terminal.status?.('')
    terminal.print(`copied ${contents} blobs with ${size(bytes)}; ${there} were already copied`)
    for (const location of damaged.slice(0, mostNamed))
      terminal.say(`not copied, because it is damaged or lost: ${location}`)
    if (damaged.length > 0) {
      const left = stopped ? `; the database still uses ${options.from}` : ''
      terminal.say(`pinfold: ${damaged.length} blobs are damaged or lost in ${options.from}${left}`)
      return exitCodes.failed
    }
    if (stopped) {
      await stopped.tx((tx) => switchBlobStore(tx, to))
      terminal.print(`the database now uses ${options.to}; start the servers with --blobs ${options.to}`)
    }
    return exitCodes.ok
  },
}

export const blobs: Commands = { copy }
