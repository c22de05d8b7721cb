import { size } from '#lib/terminal/plain-text.ts'
import type { Body } from '../framework/api-client.ts'
import type { Command, Terminal } from '../framework/command.ts'
import { type OperatorApi, operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { withReadingOperator } from './operator-command.ts'

export const gc: Command = {
  details: `Deletes blobs that no manifest uses. Servers do this every hour too. Pushes and pulls continue meanwhile. A blob that a push used
within PINFOLD_BLOB_GRACE_SECONDS is kept.
${operatorDetails}`,
  options: [...operatorOptions, { flags: '--dry-run', summary: 'Print what would be deleted, and delete nothing' }],
  async run(terminal, options) {
    const dryRun = options.dryRun === true
    const run = dryRun ? withReadingOperator : withOperator
    return run(terminal, options, async (api) => {
      const state = await collect(terminal, api, dryRun).finally(() => terminal.status?.(''))
      const verb = dryRun ? 'would remove' : 'removed'
      terminal.print(`${verb} ${state.blobs} blobs with ${size(state.bytes)}, ${state.uploads} unfinished uploads`)
      terminal.print(
        `${verb} ${state.links} links of repositories, ${state.files} stray files with ${size(state.fileBytes)}`,
      )
      return 0
    })
  },
}

async function collect(terminal: Terminal, api: OperatorApi, dryRun: boolean): Promise<Body> {
  terminal.status?.('looking for blobs that no manifest uses …')
  let state = await api.post('/control/v1/blobs:collect', { dryRun })
  while (!state.finished) {
    terminal.status?.(`${state.blobs} blobs, ${size(state.bytes)} …`)
    state = await api.post('/control/v1/blobs:collect', { dryRun, id: state.id })
  }
  return state
}
