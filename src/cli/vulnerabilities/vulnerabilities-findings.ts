// Command that lists the vulnerabilities of one image.
import type {
  FindingJson,
  ImageFindingsJson,
  ResultCoverageJson,
} from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { exitCodes } from '../framework/cli-error.ts'
import { outputOption } from '../framework/command.ts'
import { digestOf, printGaps } from './scanned-image.ts'

const levels = ['low', 'medium', 'high', 'critical']

export const imagesVulnerabilities = apiCommand({
  details: `Lists stored findings; scans nothing. Exploited vulnerabilities come first, then the list is sorted by severity and EPSS. Coverage gaps
are printed on standard error: parts of the image that were not scanned may have more vulnerabilities.
STATE is "accepted" if the risk of all vulnerabilities of the finding was accepted, and "ignored" if the distribution says that it is
not affected.
The exit code is 1 if nothing is listed and there are coverage gaps.`,
  arguments: [{ name: '<image>', summary: 'Image: acme/team/app:1.0 or acme/app@sha256:…; default tag: latest' }],
  options: [
    {
      flags: '--severity <level>',
      summary: 'Only vulnerabilities of this severity or worse, and those of unknown severity',
      choices: levels,
    },
    { flags: '--fixable', summary: 'Only vulnerabilities with a fixed version of the package' },
    outputOption,
  ],
  async run(api, options) {
    const { repo, digest } = await digestOf(api, String(options.image))
    const answer = (await api.call('GET', `/registry/v2/repos/${repo}/digests/${digest}/findings`)) as ImageFindingsJson
    const { findings = [], gaps = [], coverage } = answer
    const least = options.severity as string | undefined
    const onlyFixable = options.fixable === true
    const shown = findings.filter((one) => isSevere(one, least) && (!onlyFixable || fixesOf(one).length > 0))
    const rows = shown.map((one) => [
      namesOf(one).join(' '),
      one.severity,
      one.purl!.replace(/[?#].*$/, ''),
      fixesOf(one).join(', ') || 'none known',
      stateOf(one),
      one.exploited ? 'yes' : '',
      one.likelihood ? `${(Number(one.likelihood.epss ?? 0) * 100).toFixed(1)} %` : '',
    ])
    const isCompared = coverage?.state === 'COMPARED' || (coverage === undefined && gaps.length === 0)
    return {
      json: { ...answer, findings: shown, gaps },
      head: ['VULNERABILITY', 'SEVERITY', 'PACKAGE', 'FIXED IN', 'STATE', 'EXPLOITED', 'EPSS'],
      rows,
      ...(shown.length === 0 && { below: noneText(coverage, kindOf(least, onlyFixable)) }),
      notes: (say) => printGaps(say, gaps),
      code: shown.length === 0 && !isCompared ? exitCodes.failed : exitCodes.ok,
    }
  },
})

/** Text for an image without findings. States whether everything was scanned. A server of an earlier release sends no coverage. */
function noneText(coverage: ResultCoverageJson | undefined, kind: string): string {
  const none = `no known vulnerabilities${kind}`
  if (coverage === undefined) return none
  return `${none}${coverage.state === 'COMPARED' ? ';' : ', but'} ${coverage.summary}`
}

function kindOf(least: string | undefined, onlyFixable: boolean): string {
  const severity = least === undefined ? '' : ` of severity ${least}${least === 'critical' ? '' : ' or worse'}`
  return `${severity}${onlyFixable ? ' with a fixed version' : ''}`
}

/** True if the severity is at least this level. An unknown severity may be worse, so it is never left out. */
function isSevere({ severity = '' }: FindingJson, least: string | undefined): boolean {
  return least === undefined || severity === 'unknown' || levels.indexOf(severity) >= levels.indexOf(least)
}

const fixesOf = ({ fixedVersions = [] }: FindingJson): readonly string[] => fixedVersions

const namesOf = ({ vulnerabilities = [], record }: FindingJson): readonly string[] =>
  vulnerabilities.length > 0 ? vulnerabilities : [record!]

function stateOf(finding: FindingJson): string {
  if (finding.suppressedBy) return 'ignored'
  const accepted = (finding.acceptedBy ?? []).length
  return accepted > 0 && accepted >= namesOf(finding).length ? 'accepted' : 'affected'
}
