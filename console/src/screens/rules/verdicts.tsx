// Verdicts that admission policies have about images now. Includes policies in dry run.
import { paths } from '../../app/paths.ts'
import { can } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import type { Tag, Verdict } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { allPassText, isUnscanned, verdictBadge, verdictReason } from '../../ui/scan-words.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge } from '../../ui/text.tsx'
import { admissionWords } from '../../words/admission.ts'
import { digestWords } from '../../words/digests.ts'
import { words } from '../../words.ts'

type Asked = { digest: string } | { tag: string }

/** Verdicts of all policies for an image. */
export async function verdictsOn(repo: string, image: Asked, signal: AbortSignal): Promise<Verdict[]> {
  const path = `/registry/v1/repos/${repo}:checkPolicies`
  const { results = [] } = await ask<{ results?: Verdict[] }>('POST', path, { body: image, signal })
  return results
}

/** Result of each admission policy for a digest. Policies that are off are left out. */
export function AdmissionResults({ repo, digest }: { repo: string; digest: string }) {
  const read = useLoad(`gates on ${repo} ${digest}`, (signal) => verdictsOn(repo, { digest }, signal))
  const isMissing = read.error instanceof Refusal && read.error.status === 404
  return (
    <>
      <h2>{admissionWords.gateResults}</h2>
      {isMissing ? (
        <Empty>{digestWords.digestMissing}</Empty>
      ) : (
        <Shown of={read}>
          {(results) =>
            results.length === 0 ? (
              <Empty>{admissionWords.noGateApplies}</Empty>
            ) : (
              <Table
                caption={admissionWords.gateResults}
                columns={columns}
                items={results}
                keyOf={({ policyId }: Verdict) => policyId}
              />
            )
          }
        </Shown>
      )}
    </>
  )
}

const checkedTags = 10

type TagVerdict = Verdict & { tag: string }

/** Recently updated tags whose pull the policies would deny. Users can so try a policy before it is enforced. */
export function DeniedTags({ names, repo }: { names: readonly string[]; repo: string }) {
  if (!can('repo.check_policies', repo) || !can('tag.list', repo)) return null
  return <DeniedTagList names={names} repo={repo} />
}

function DeniedTagList({ names, repo }: { names: readonly string[]; repo: string }) {
  const read = useLoad(`denied tags ${repo}`, async (signal) => {
    const query = { 'uidp.childrenOf': repo, orderBy: 'update_time desc' }
    const { items } = await readPage<Tag>('/registry/v2/tags', 'tags', { size: checkedTags, query, signal })
    const found = items.map(async ({ name, digest }): Promise<TagVerdict[]> => {
      // Since the list was read, the tag may have been deleted. A digest of an imported history has no image.
      const results = await verdictsOn(repo, { digest }, signal).catch((error: unknown) => {
        if (error instanceof Refusal && error.status === 404) return []
        throw error
      })
      return results.map((one) => ({ ...one, tag: name }))
    })
    const all = (await Promise.all(found)).flat()
    const refused = all.filter(({ result }) => result !== 'RESULT_ALLOWED')
    return { count: items.length, refused, unscanned: new Set(all.filter(isUnscanned).map(({ tag }) => tag)).size }
  })
  const tagColumn: Column<TagVerdict> = {
    title: words.tag,
    isHead: true,
    cell: ({ tag }) => (
      <a data-main href={paths.tag(names, tag)}>
        <bdi>{tag}</bdi>
      </a>
    ),
  }
  return (
    <>
      <h2>{admissionWords.deniedTags}</h2>
      <Shown of={read}>
        {({ count, refused, unscanned }) =>
          refused.length === 0 ? (
            <Empty>{allPassText(count, unscanned)}</Empty>
          ) : (
            <Table
              caption={admissionWords.deniedTags}
              columns={[tagColumn, ...columns.map((one) => ({ ...one, isHead: false }))]}
              items={refused}
              keyOf={({ tag, policyId }) => `${tag} ${policyId}`}
            />
          )
        }
      </Shown>
    </>
  )
}

const columns: Column<Verdict>[] = [
  { title: words.policy, isHead: true, cell: ({ policyName }) => <bdi>{policyName}</bdi> },
  { title: words.result, cell: (one) => <VerdictBadge {...one} /> },
  {
    title: words.reason,
    cell: ({ parameters }) => <bdi>{verdictReason(parameters)}</bdi>,
  },
]

function VerdictBadge(verdict: Pick<Verdict, 'mode' | 'result' | 'coverage'>) {
  const { kind, text } = verdictBadge(verdict)
  return <Badge kind={kind}>{text}</Badge>
}
