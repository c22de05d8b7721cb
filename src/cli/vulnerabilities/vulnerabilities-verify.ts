import type { VerifyFindingsResponseJson } from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import { exitCodes } from '../framework/cli-error.ts'
import { outputOption } from '../framework/command.ts'
import { operatorOptions } from '../framework/operator.ts'
import { operatorCommand, readingDetails } from '../server/operator-command.ts'

const mostShown = 1000

export const vulnerabilitiesVerify = operatorCommand({
  reads: true,
  details: `Changes nothing. The exit code is 1 if a stored finding differs. Comparisons that still wait can cause differences; their number is
printed too.

${readingDetails}`,
  options: [...operatorOptions, outputOption],
  async run(api) {
    const differences: string[] = []
    let [checked, found, waiting] = [0, 0, 0]
    for (let after: string | undefined; after !== ''; ) {
      const answer = await api.post('/control/v1/findings:verify', { after: after ?? '' })
      const { differences: some = [], next = '' } = answer as VerifyFindingsResponseJson
      found += some.length
      differences.push(...some.slice(0, mostShown - differences.length))
      checked += Number(answer.checked ?? 0)
      waiting = Number(answer.waiting ?? 0)
      after = next
    }
    const summary = `${checked} packages and lists checked, ${found} differences, ${waiting} comparisons wait`
    const code = found > 0 ? exitCodes.failed : exitCodes.ok
    return { json: { checked, waiting, differences }, dense: true, text: [...differences, summary], code }
  },
})
