import type { Change } from './compare.ts'

/** Releases from before all of these changes; they also have what cannot be made any more. */
const first = ['0.1.0-709b3c6', '0.1.0-2ae517d']

const sinceFirst: readonly Change[] = [
  {
    why: 'the size of an image is that of what is stored, not what its manifest says',
    about: (question, section) => section === 'resources' && question.endsWith('/size'),
    now: (answer) => (answer.size === '1099511627777' ? { ...answer, size: '60' } : answer),
  },
  {
    why: 'images are found in indexes however deep they nest, since an answer is bounded by what it reads',
    about: (question, section) => section === 'resources' && question.endsWith('/architectures'),
    now: (answer) => (answer.architectures?.length === 0 ? { architectures: ['amd64'] } : answer),
  },
  {
    why: 'the same for their sizes',
    about: (question, section, release) =>
      section === 'resources' && release === '0.1.0-709b3c6' && question.endsWith('/size'),
    now: (answer) => (answer.reason === 'NOT_FOUND' ? { size: '54', architecture: 'amd64' } : answer),
  },
  {
    why: 'version 1 answers over REST with members that are not set, as its clients expect',
    about: (question, section) => section === 'tokens' && question.endsWith('GET /auth/v1/ok'),
    now: (answer) => ({
      profile: null,
      ...answer,
      capabilities: answer.capabilities.map((one: { group: object }) => ({
        role: null,
        ...one,
        group: { kind: 'ORG_KIND_UNSPECIFIED', status: 'ORG_STATUS_UNSPECIFIED', ...one.group },
      })),
    }),
  },
  {
    why: 'the source of an event of the registry is a URI reference, also where the host is an address with a port',
    about: (question, section) => section === 'events' && question.includes('group='),
    now: (answer) =>
      answer.map(({ attributes, ...event }: { attributes: { source: string } }) => {
        const source = attributes.source.replace(/^(?=127)/, '//')
        return { ...event, attributes: { ...attributes, source } }
      }),
  },
  {
    why: 'the built-in roles, which an invite shows with what they hold, hold what existing clients know of them',
    about: (question, section) => section === 'resources' && question.includes('/iam/v2/groupInvites/'),
    now: withoutHeld,
    without: withoutHeld,
  },
  {
    why: 'there are seven more built-in roles, which existing clients know',
    about: (question, section) => section === 'lists' && question.includes('/iam/v2/roles'),
    // Tables that have got more rows were changed later.
    now: ({ items, ...answer }, question) => ({ ...answer, items: inOrder(items, question) }),
    without: ({ items, ...answer }, question) =>
      withoutRoles(
        { ...answer, items: inOrder(items, question) },
        question,
        /^(?:apk|libraries\.\w+)\.pull |^mcp\.tool_user /,
      ),
  },
]

/**
 * Answers that differ on purpose, each with its reason. Add an entry here instead of editing the recorded answers of a release.
 * An entry without an effect fails the test.
 */
export const changes: readonly Change[] = [
  ...sinceFirst.map((change) => ({
    ...change,
    about: (...asked: Parameters<Change['about']>) => first.includes(asked[2]) && change.about(...asked),
  })),
  {
    why: 'there is a built-in role for auditors',
    about: (question, section) => section === 'lists' && question.includes('/iam/v2/roles'),
    without: (answer, question) => withoutRoles(answer, question, /^auditor 81fc16$/),
  },
  {
    why: 'the creation of an invitation answers with its link, and other answers have an empty one',
    about: (question, section) => section === 'resources' && question.includes('/iam/v2/groupInvites/'),
    without: ({ link, ...invite }) => (link === '' ? invite : { link, ...invite }),
  },
  {
    why: 'stored deliveries that are pending have a quota',
    about: (question) => question.includes('/iam/v2/quotas/'),
    without: ({ quotas, ...answer }) => ({
      ...answer,
      ...(quotas && { quotas: quotas.filter(({ name }: { name: string }) => name !== 'pending_deliveries') }),
    }),
  },
  {
    why: 'lists of ours say how many items there are, and how many were skipped',
    about: (question, section) => section === 'history' && /tagHistory/.test(question),
    without: ({ totalCount, skipped, ...answer }) => answer,
  },
  {
    why: 'a delivery says when it changed last',
    about: (question, section) => section === 'history' && question.includes('/deliveries'),
    without: ({ updateTime, ...answer }) => ({
      ...answer,
      ...(answer.deliveries && {
        deliveries: answer.deliveries.map(({ updateTime, ...delivery }: { updateTime: string }) => delivery),
      }),
    }),
  },
  {
    why: 'a record of the ledger says what whoever made it is called',
    about: (question) => /^operator GET \/registry\/v2\/\w+\/\S+\/tagHistory\?/.test(question),
    without: ({ records, ...answer }) => ({
      ...answer,
      ...(records && { records: records.map(({ actorName, ...record }: { actorName: string }) => record) }),
    }),
  },
  {
    why: 'a record of the tag history has the reason of a restore, which is empty for other changes',
    about: (question, section) => section === 'history' && /tagHistory/.test(question),
    without: ({ records, ...answer }) => ({
      ...answer,
      ...(records && {
        records: records.map(({ restoreReason, ...record }: { restoreReason?: string }) =>
          restoreReason ? { restoreReason, ...record } : record,
        ),
      }),
    }),
  },
  {
    why: 'an entry of the audit log has a sentence with names',
    about: (question) => question.includes('GET /events/v2/audit?'),
    without: ({ auditEntries, ...answer }) => ({
      ...answer,
      ...(auditEntries && { auditEntries: auditEntries.map(withoutSentence) }),
    }),
  },
]

type Described = { sentence: string; sentenceParts: object; actorKind: string; former: string }

function withoutSentence({ sentence, sentenceParts, actorKind, former, ...entry }: Described): object {
  return entry
}

type RoleList = { items: readonly string[]; totalCount: string; pages: number }

function withoutRoles({ items, totalCount, ...answer }: RoleList, question: string, added: RegExp): RoleList {
  const left = items.filter((item) => !added.test(item))
  const total = Number(totalCount) - (items.length - left.length)
  const size = Number(/page_size=(\d+)/.exec(question)?.[1] ?? 50)
  return { ...answer, items: left, totalCount: String(total), pages: Math.max(1, Math.ceil(total / size)) }
}

function inOrder(items: readonly string[], question: string): readonly string[] {
  return question.includes('order_by=updated_at') ? items.toSorted() : items
}

function withoutHeld({ role, ...invite }: { role: object }): unknown {
  return { ...invite, role: { ...role, capabilities: [], updateTime: '' } }
}
