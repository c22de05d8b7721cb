// Texts that several screens share: errors, lists, and names of columns and buttons.
import { counted, numbers } from './format.ts'

type Counts = { critical: number; high: number; medium: number; low: number; unknown: number }

const errors = {
  loading: 'Loading',
  tryAgain: 'Try again',
  signInAgain: 'Sign in again and return here',
  requestId: 'Request ID',
  consoleFailed: 'The console failed because of a bug. Reload the page. If it fails again, report this error:',
  refused: 'The server refused the request',
  staleSignIn:
    'Nothing was changed. This action needs a sign-in from the last ten minutes. Sign in again, then repeat it.',
  unreachable: 'The server did not answer. Check your network connection, then try again.',
  statuses: {
    400: 'The request is not valid',
    401: 'Your session has ended, or another user has signed in with this browser. Sign in again.',
    403: 'You do not have permission for this action',
    404: 'Not found, or you do not have access to it',
    409: 'The resource already exists, or somebody else changed it at the same time',
    429: 'Too many requests. Wait a moment, then try again.',
    500: 'Internal server error. Try again. If it fails again, give the request ID to the operator of the server.',
    503: 'The server is temporarily unavailable. Try again in a moment.',
  } as Record<number, string>,
}

const lists = {
  pages: 'Pages',
  pagesBelow: 'Pages (below the list)',
  page: 'Page',
  goToPage: 'Go',
  first: 'First',
  previous: 'Previous',
  next: 'Next',
  last: 'Last',
  rows: (total: number) => counted(total, 'row'),
  rowsOf: (from: string, to: string, total: string) => `Rows ${from} to ${to} of ${total}`,
  noSuchPage: (page: number) => `The list has no page ${numbers(page)}.`,
  lastPage: 'Show the last page',
  firstPage: 'Show the first page',
  showOlder: 'Show older',
  showMore: 'Show more',
  showAll: 'Show all',
  noOlder: 'There are no older entries.',
  pageOf: (list: string, page: number) => `${list}, page ${numbers(page)}`,
  moreThan: (shown: number) => `Only the first ${numbers(shown)} are shown. There are more.`,
  onlySome: (shown: number, all: number) => `Only the first ${numbers(shown)} of ${numbers(all)} are shown.`,
}

const parts = {
  pickHint: 'Search by name',
  nothingPicked: (text: string) => `No name contains “${text}”.`,
  findingCounts: ({ critical, high, medium, low, unknown }: Counts) =>
    `${critical} critical, ${high} high, ${medium} medium, ${low} low${unknown > 0 ? `, ${unknown} unknown` : ''}`,
  unknownFindings: (count: number) => `+${numbers(count)} unknown`,
  notScanned: 'not scanned',
  scannedInPart: 'not scanned completely',
}

const buttons = {
  find: 'Find',
  show: 'Show',
  actions: 'Actions',
  copy: 'Copy',
  copied: 'Copied',
  notCopied:
    'Not copied: the browser blocks access to the clipboard. The text is selected. Copy it with Ctrl+C, or ⌘C on a Mac.',
  copyCommand: 'Copy the command',
  copyCommandFor: (client: string) => `Copy the command for ${client}`,
  create: 'Create',
  edit: 'Edit',
  editOf: (name: string) => `Edit ${name}`,
  save: 'Save',
  delete: 'Delete',
  accept: 'Accept',
  decline: 'Decline',
  revoke: 'Revoke',
  typeName: (name: string) => `Type ${name} to confirm`,
}

const columns = {
  name: 'Name',
  kind: 'Kind',
  description: 'Description',
  state: 'State',
  from: 'From',
  to: 'Until',
  time: 'Time',
  event: 'Event',
  actor: 'Actor',
  identity: 'Identity',
  client: 'Client',
  result: 'Result',
  reason: 'Reason',
  role: 'Role',
  scope: 'Scope',
  policy: 'Policy',
  expires: 'Expires',
  details: 'Details',
  organization: 'Organization',
  group: 'Group',
  repository: 'Repository',
  image: 'Image',
  tag: 'Tag',
  tags: 'Tags',
  digest: 'Digest',
  size: 'Size',
  createdAt: 'Created',
  updatedAt: 'Updated',
  vulnerability: 'Vulnerability',
  vulnerabilities: 'Vulnerabilities',
  package: 'Package',
  packages: 'Packages',
  version: 'Version',
  ecosystem: 'Ecosystem',
  severity: 'Severity',
}

const values = {
  here: 'here',
  inherited: 'inherited',
  inheritedFrom: (group: string) => `inherited from ${group}`,
  by: 'by',
  since: 'since',
  until: 'until',
  between: 'between',
  and: 'and',
  now: 'now',
  deleted: 'deleted',
  unknown: 'unknown',
  unnamed: 'unnamed',
  nameUnknown: 'unknown actor',
  noAccess: '(no access)',
  anonymous: 'anonymous',
  severities: {
    critical: 'critical',
    high: 'high',
    medium: 'medium',
    low: 'low',
    negligible: 'negligible',
    unknown: 'unknown',
  } as Record<string, string>,
  findingStates: {
    AFFECTED: 'affected',
    UNCERTAIN: 'may be affected',
    SUPPRESSED: 'not affected, according to the distribution',
    ACCEPTED: 'ignored',
  } as Record<string, string>,
}

export const shared = { ...errors, ...lists, ...parts, ...buttons, ...columns, ...values }
