import type {
  ListVulnerabilitySourcesResponseJson,
  VulnerabilitySourceJson,
} from '#gen/pinfold/control/scanning/v1/sources_pb.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import { exitCodes } from '../framework/cli-error.ts'
import { outputOption } from '../framework/command.ts'
import { operatorOptions } from '../framework/operator.ts'
import { operatorCommand, readingDetails } from '../server/operator-command.ts'

export const vulnerabilitiesStatus = operatorCommand({
  reads: true,
  details: `A data source that could not be read keeps its former data. The exit code is 1 if there is such a source.

${readingDetails}`,
  options: [...operatorOptions, outputOption],
  async run(api, options, { print }) {
    const { sources = [] } = (await api.get('/control/v1/vulnerabilitySources')) as ListVulnerabilitySourcesResponseJson
    if (options.output !== 'json') for (const line of sources.flatMap(linesOf)) print(line)
    const none =
      sources.length === 0
        ? [
            'no data source was read yet: the server reads those that stored images need, within a minute after the push',
          ]
        : []
    const code = sources.some(({ error }) => error) ? exitCodes.failed : exitCodes.ok
    return { json: sources, dense: true, text: none, code }
  },
})

function linesOf({ name, records, fetchTime, buildTime, error }: VulnerabilitySourceJson): string[] {
  const built = buildTime ? `, built ${buildTime}` : ''
  const read = fetchTime ? `read ${fetchTime}${built}` : 'never read completely'
  return [plain(`${name}: ${records} records, ${read}`), ...(error ? [`  ${plain(`failed: ${error}`)}`] : [])]
}
