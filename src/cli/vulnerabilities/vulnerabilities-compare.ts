import type { ComparedVulnerabilityJson, ImageComparisonJson } from '#gen/pinfold/control/scanning/v1/images_pb.ts'
import type { Row } from '#lib/terminal/plain-text.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { type Command, outputOption } from '../framework/command.ts'
import { digestOf, printGaps } from './scanned-image.ts'

export const vulnerabilitiesCompare = apiCommand({
  details: `Lists coverage gaps of both images on standard error. A vulnerability of the base is listed as unknown instead of resolved if the
image has a coverage gap there.`,
  arguments: [
    { name: '<image>', summary: 'Image: acme/team/app:1.1 or acme/app@sha256:…' },
    { name: '<base>', summary: 'Image to compare with, such as acme/team/app:1.0' },
  ],
  options: [outputOption],
  async run(api, options) {
    const image = await digestOf(api, String(options.image))
    const base = await digestOf(api, String(options.base))
    const query = new URLSearchParams({ base_digest: base.digest, base_repo_uid: base.repo })
    const path = `/registry/v2/repos/${image.repo}/digests/${image.digest}/comparison?${query}`
    const compared = (await api.call('GET', path)) as ImageComparisonJson
    const { added = [], removed = [], changed = [], found = [], resolved = [], unknown = [] } = compared
    const rows = [
      ...found.map((one) => ['found', ...cellsOf(one)]),
      ...resolved.map((one) => ['resolved', ...cellsOf(one)]),
      ...unknown.map((one) => ['unknown', ...cellsOf(one)]),
      ...added.map(({ name, version, ecosystem }) => ['added', name, version, ecosystem]),
      ...removed.map(({ name, version, ecosystem }) => ['removed', name, version, ecosystem]),
      ...changed.map(({ package: one, baseVersion }) => {
        return ['changed', one?.name, `${baseVersion} → ${one?.version}`, one?.ecosystem]
      }),
    ]
    return {
      json: compared,
      head: ['CHANGE', 'NAME', 'VALUE', 'WHERE'],
      rows,
      ...(found.length + resolved.length + unknown.length === 0 && { below: noneText(compared) }),
      notes(say) {
        printGaps(say, compared.gaps ?? [])
        printGaps(say, compared.baseGaps ?? [], ' of the base')
      },
    }
  },
})

/** The command `images diff`: the same comparison, with the base image first, as other clients expect. */
export const imagesDiff: Command = {
  ...vulnerabilitiesCompare,
  arguments: [
    { name: '<base>', summary: 'First image: acme/team/app:1.0 or acme/app@sha256:…' },
    { name: '<image>', summary: 'Image to compare with it, such as acme/team/app:1.1' },
  ],
}

/** Text for two images without differences, with the coverage gaps of both. */
function noneText({ coverage, baseCoverage }: ImageComparisonJson): string {
  const left = [
    ...(coverage && coverage.state !== 'COMPARED' ? [`image: ${coverage.summary}`] : []),
    ...(baseCoverage && baseCoverage.state !== 'COMPARED' ? [`base: ${baseCoverage.summary}`] : []),
  ]
  if (left.length > 0) return `no known vulnerability differs, but not everything was scanned: ${left.join('; ')}`
  return 'no vulnerability differs; everything was scanned'
}

const cellsOf = ({ vulnerability, severity, purls = [] }: ComparedVulnerabilityJson): Row => {
  return [vulnerability, severity, purls.join(' ')]
}
