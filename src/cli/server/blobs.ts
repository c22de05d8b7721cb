import { type Command, type CommandGroup, exitCodes } from '../shape/command.ts'
import { size } from '../shape/plain-text.ts'
import { configOf, settingOptions } from '../shape/settings.ts'

/** How many damaged contents are named. */
const mostNamed = 20

const copy: Command = {
  name: 'copy',
  summary: 'Copy the blobs of the database from one folder or bucket to another',
  details: `The server may run meanwhile, with the first of the two. What is there already is not copied again, so run it once more
when all servers are stopped, which takes a moment, and start them with the second as their --blobs. Each content is verified.`,
  arguments: [
    { name: '<from>', summary: 'What the server has as its --blobs' },
    { name: '<to>', summary: 'A folder or a bucket, spelled in the same way' },
  ],
  options: settingOptions('data', 'database'),
  async run(terminal, options) {
    const config = configOf(terminal.env, { ...options, blobs: String(options.from) })
    const target = configOf(terminal.env, { ...options, blobs: String(options.to) })
    const { copyBlobsOf } = await import('#open-copy.ts')
    const report = ({ contents, bytes }: { contents: number; bytes: number }) =>
      terminal.status?.(`${contents} blobs, ${size(bytes)} …`)
    const { contents, bytes, there, damaged } = await copyBlobsOf(config, target.blobs, report)
    terminal.status?.('')
    terminal.print(`copied ${contents} blobs with ${size(bytes)}; ${there} were there already`)
    for (const location of damaged.slice(0, mostNamed)) terminal.say(`damaged or lost, and not copied: ${location}`)
    if (damaged.length > 0) terminal.say(`pinfold: ${damaged.length} blobs are damaged or lost in ${options.from}`)
    return damaged.length > 0 ? exitCodes.failed : exitCodes.ok
  },
}

export const blobs: CommandGroup = { name: 'blobs', summary: 'Where blobs are kept', commands: [copy] }
