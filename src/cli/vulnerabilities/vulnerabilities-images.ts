// Commands that list images with a vulnerability or a package, and the packages of an image.
import type { CoverageGapJson } from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import type {
  ImagePackageJson,
  ImageWithPackageJson,
  VulnerableImageJson,
} from '#gen/pinfold/control/scanning/v1/images_pb.ts'
import { exitCodes } from '../framework/cli-error.ts'
import { outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { digestOf, imagesOf, namesOfImages, printGaps, printUnknown, scopeOf, scopeOption } from './scanned-image.ts'

export const vulnerabilitiesImages = listCommand({
  details: `Lists stored findings; scans nothing. An image that is not listed may be affected too: the command prints the number of images that
could not be read completely, and the coverage gaps. The exit code is 1 if no image is listed and there are coverage gaps.`,
  arguments: [{ name: '<vulnerability>', summary: 'CVE, or another id that a data source has for the vulnerability' }],
  options: [scopeOption, outputOption],
  async run(api, options) {
    const query = { vulnerability: String(options.vulnerability), scope_uid: await scopeOf(api, options) }
    const found = await imagesOf<VulnerableImageJson>(api, '/registry/v2/vulnerableImages', query)
    const { items, more, unknown, coverage, gaps } = found
    const names = await namesOfImages(api, items)
    const rows = items.map(({ state, severity, purls = [], morePurls }, i) => [
      names[i]!,
      state?.toLowerCase(),
      severity,
      `${purls.join(' ')}${morePurls ? ' …' : ''}`,
    ])
    const isRead = unknown.unknownImages === 0 && !unknown.moreUnknownImages
    const isWhole = coverage ? coverage.state === 'COMPARED' : isRead
    // An empty list after skipped images does not show that no image has the vulnerability.
    const isNone = items.length === 0 && Number(options.skip ?? 0) === 0
    const none = `no known image has ${query.vulnerability}`
    const below = coverage ? `${none}${isWhole ? ';' : ', but'} ${coverage.summary}` : none
    return {
      ...{ json: { items, ...unknown, coverage, gaps }, head, rows, more },
      ...(isNone && { below }),
      notes(say) {
        // A server of an earlier release does not send this summary.
        if (isNone && coverage !== undefined && options.output !== 'json') return
        printUnknown(say, unknown)
        printGaps(say, gaps)
      },
      code: isNone && !isWhole ? exitCodes.failed : exitCodes.ok,
    }
  },
})

const head = ['IMAGE', 'STATE', 'SEVERITY', 'PACKAGES']

export const vulnerabilitiesPackages = listCommand({
  details: 'Prints coverage gaps on standard error: packages that could not be read are not listed.',
  arguments: [{ name: '<image>', summary: 'Image: acme/team/app:1.0 or acme/app@sha256:…; default tag: latest' }],
  options: [outputOption],
  async run(api, options) {
    const { repo, digest } = await digestOf(api, String(options.image))
    const path = `/registry/v2/repos/${repo}/digests/${digest}/packages`
    const { items, more } = await api.selected<ImagePackageJson>(path, 'packages', {})
    const gaps = ((await api.call('GET', `${path}?page_size=1`)).gaps ?? []) as CoverageGapJson[]
    const sorted = api.isOrdered ? items : items.sort((one, other) => (one.purl! < other.purl! ? -1 : 1))
    const rows = sorted.map(({ name, version, ecosystem, origin }) => [name, version, ecosystem, origin])
    const head = ['NAME', 'VERSION', 'ECOSYSTEM', 'FROM']
    return { json: { items: sorted, gaps }, head, rows, more, notes: (say) => printGaps(say, gaps) }
  },
})

const path = '/registry/v2/imagesWithPackage'

export const vulnerabilitiesImagesWith = listCommand({
  details: `A name also finds packages by their source package: openssl finds libssl3. Images that could not be read completely are counted,
not listed.`,
  arguments: [{ name: '<package>', summary: 'Package: its name, or a package URL such as pkg:pypi/flask@2.0.0' }],
  options: [
    { flags: '--ecosystem <name>', summary: 'Only packages of this ecosystem, such as PyPI, Alpine or Alpine:v3.19' },
    { flags: '--of <version>', summary: 'Only this version' },
    { flags: '--range <range>', summary: 'Only versions in this range, such as ">=1.2.0,<1.2.7"' },
    scopeOption,
    outputOption,
  ],
  async run(api, options) {
    const named = String(options.package)
    const text = (name: string) => options[name] as string | undefined
    const query = {
      [named.startsWith('pkg:') ? 'purl' : 'name']: named,
      ecosystem: text('ecosystem'),
      version: text('of'),
      version_range: text('range'),
      scope_uid: await scopeOf(api, options),
    }
    const { items, more, unknown } = await imagesOf<ImageWithPackageJson>(api, path, query)
    const names = await namesOfImages(api, items)
    const rows = items.map(({ packages = [], morePackages, uncertain }, i) => {
      const more = `${morePackages ? ' …' : ''}${uncertain ? ' (version cannot be compared)' : ''}`
      return [names[i]!, `${packages.map(({ purl }) => purl).join(' ')}${more}`]
    })
    const head = ['IMAGE', 'PACKAGES']
    return { json: { items, ...unknown }, head, rows, more, notes: (say) => printUnknown(say, unknown) }
  },
})
