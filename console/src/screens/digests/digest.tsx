// Screen of an image: summary first, and then a tab for each of its parts.
import { paths } from '../../app/paths.ts'
import { here } from '../../app/route.ts'
import { can } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { findRepo } from '../../data/names.ts'
import type { ImageSummary } from '../../data/types.ts'
import { Ago } from '../../ui/ago.tsx'
import { useLoad } from '../../ui/load.ts'
import { nameOf, Screen, trailOf } from '../../ui/screen.tsx'
import { Note, Shown } from '../../ui/states.tsx'
import { type Tab, Tabs } from '../../ui/tabs.tsx'
import { Badge, Copy, hex8 } from '../../ui/text.tsx'
import { digestWords } from '../../words/digests.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { AdmissionResults } from '../rules/verdicts.tsx'
import { pinOf } from '../start/start.tsx'
import { DigestRetention } from './digest-retention.tsx'
import { ImageHistory } from './image-history.tsx'
import { ImagePackages } from './image-packages.tsx'
import { Summary } from './image-summary.tsx'
import { Layers } from './layers.tsx'
import { Pulls } from './pulls.tsx'
import { Referrers } from './referrers.tsx'
import { Signatures } from './signatures.tsx'
import { Vulnerabilities } from './vulnerabilities.tsx'

type Props = { names: readonly string[]; digest: string; query: URLSearchParams }

export function DigestScreen({ names, digest, query }: Props) {
  const read = useLoad(`image ${names.join('/')} ${digest}`, async (signal) => {
    const { item } = await findRepo(names)
    return { repo: item.uid, image: await readSummary(item.uid, digest, signal) }
  })
  const trail = [...trailOf(names), { label: names.at(-1)!, href: paths.repo(names) }]
  const pin = pinOf(names, digest)
  return (
    <Screen
      title={`${nameOf(names.at(-1)!)}@${hex8(digest)}`}
      trail={trail}
      crumb={hex8(digest)}
      actions={
        <>
          <Copy text={digest} label={digestWords.copyDigest}>
            {digestWords.copyDigest}
          </Copy>{' '}
          <Copy isPin text={pin} label={tagWords.copyWithDigest}>
            {tagWords.copyWithDigest}
          </Copy>
        </>
      }
    >
      <Shown of={read}>
        {({ repo, image }) =>
          image === 'missing' ? (
            <>
              <Note kind="warn">{digestWords.imageMissing}</Note>
              <Parts names={names} repo={repo} digest={digest} query={query} parts={partsOfMissing} />
            </>
          ) : (
            <>
              {image !== 'unseen' && <Head names={names} repo={repo} digest={digest} image={image} />}
              <Parts names={names} repo={repo} digest={digest} query={query} parts={allParts} />
            </>
          )
        }
      </Shown>
    </Screen>
  )
}

/** The user may lack the permission for the summary. Then the tabs are shown without it. */
async function readSummary(
  repo: string,
  digest: string,
  signal: AbortSignal,
): Promise<ImageSummary | 'missing' | 'unseen'> {
  const path = `/registry/v2/repos/${repo}/imageSummaries`
  try {
    const { images } = await ask<{ images: ImageSummary[] }>('GET', path, { query: { digests: digest }, signal })
    return images[0] ?? 'missing'
  } catch (error) {
    if (error instanceof Refusal && error.status === 403) return 'unseen'
    throw error
  }
}

type HeadProps = { names: readonly string[]; repo: string; digest: string; image: ImageSummary }

function Head({ names, repo, digest, image }: HeadProps) {
  const { tags, createTime, artifactType } = image
  return (
    <>
      <p class="about">
        {tags.map((tag) => (
          <a key={tag} class="chip" href={paths.tag(names, tag)}>
            <bdi>{tag}</bdi>
          </a>
        ))}
        {tags.length === 0 && <Badge kind="plain">{digestWords.untagged}</Badge>}
        <span>
          {digestWords.pushed} <Ago at={createTime} />
        </span>
        {!artifactType.includes('image.config') && artifactType !== '' && <bdi class="dim">{artifactType}</bdi>}
      </p>
      <Summary repo={repo} digest={digest} image={image} />
    </>
  )
}

const allParts = ['vulnerabilities', 'packages', 'layers', 'referrers', 'history', 'pulls', 'retention'] as const
const partsOfMissing = ['history', 'pulls', 'retention'] as const
type Part = (typeof allParts)[number]

type PartsProps = Props & { repo: string; parts: readonly Part[] }

function Parts({ names, repo, digest, query, parts }: PartsProps) {
  const part = parts.find((one) => one === query.get('tab')) ?? parts[0]!
  const tabs = parts.map((one): Tab => {
    const cleared = { q: undefined, severity: undefined, only: undefined, architecture: undefined, page: undefined }
    return { label: digestWords.parts[one], href: paths.with(here(), { tab: one, ...cleared }), isNow: one === part }
  })
  const at = { names, repo, digest }
  const shown: Record<Part, () => preact.ComponentChildren> = {
    vulnerabilities: () => <Vulnerabilities repo={repo} digest={digest} query={query} />,
    packages: () => <ImagePackages repo={repo} digest={digest} />,
    layers: () => <Layers repo={repo} digest={digest} architecture={query.get('architecture') ?? ''} />,
    referrers: () => (
      <>
        <Referrers {...at} />
        <h2>{digestWords.signatures}</h2>
        <Signatures {...at} />
      </>
    ),
    history: () => <ImageHistory {...at} />,
    pulls: () => <Pulls repo={repo} digest={digest} />,
    retention: () => (
      <>
        {parts === allParts && can('repo.check_policies', repo) && <AdmissionResults repo={repo} digest={digest} />}
        <h2>{digestWords.retention}</h2>
        <DigestRetention {...at} />
      </>
    ),
  }
  return (
    <>
      <Tabs label={words.views} tabs={tabs} />
      {shown[part]()}
    </>
  )
}
