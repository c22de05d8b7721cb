// / and /ui/: pages for people. Sign-in pages are plain HTML, and two of them have a script of one line. All other paths below
// /ui/ belong to the console. Only these pages accept session cookies.
import type { Edge } from '#edge/arrival.ts'
import { nobody } from '#edge/caller.ts'
import { type EntryPoint, type HttpArrival, withVerbs } from '#edge/entry-points.ts'
import { type Session, sessionOfCookie } from '#issuer/people/sessions.ts'
import { accountPage, endSession, signOutPage } from './account.ts'
import { assetsPath, type Console, openConsole, sendAsset, sendConsole } from './console.ts'
import { readCookie } from './cookies.ts'
import {
  authorizeHeadless,
  confirmDevicePage,
  decideDevice,
  devicePage,
  headlessPage,
  headlessPath,
  takeDeviceCode,
} from './device.ts'
import { homePage } from './home.ts'
import { invitePage, takeInvite } from './invitations.ts'
import { isAtUrl, send, sendOn } from './page.ts'
import { refusePage } from './sign-in-entry-point.ts'
import { enter, enterPage, signInPage, startPage, takeOrganization } from './sign-in-pages.ts'

type Show = (arrival: HttpArrival, session: Session) => void | Promise<void>
type Open = (arrival: HttpArrival) => void | Promise<void>

/** Pages that need no session. */
const open: Record<string, Open> = {
  'GET /': homePage,
  'GET /ui/signin': signInPage,
  'POST /ui/signin': takeOrganization,
  'GET /ui/signin/start': startPage,
  'GET /ui/enter': enterPage,
  'POST /ui/enter': enter,
  'GET /ui/invite': invitePage,
  'POST /ui/invite': takeInvite,
  'GET /ui/device': devicePage,
  'POST /ui/device': takeDeviceCode,
}

/** Pages that need a session. */
const signedIn: Record<string, Show> = {
  'GET /ui/sessions': accountPage,
  'POST /ui/sessions/end': endSession,
  'POST /ui/signout': signOutPage,
  'GET /ui/device/confirm': confirmDevicePage,
  'POST /ui/device/confirm': decideDevice,
  [`GET ${headlessPath}`]: headlessPage,
  [`POST ${headlessPath}`]: authorizeHeadless,
}

const known = [...Object.keys(open), ...Object.keys(signedIn)]
const paths = [...new Set(known.map((one) => one.split(' ')[1]!))]
const assetPath = `${assetsPath}…`
const otherPath = '/ui/…'

/** Entry point of the pages. */
export function pagesEntryPoint(edge: Edge): EntryPoint {
  const files = openConsole()
  return {
    name: 'ui',
    methods: withVerbs([...paths, assetPath, otherPath]),
    deadlineMs: edge.app.config.requestTimeoutMs,
    matches: (path) => path === '/' || path === '/ui' || path.startsWith('/ui/'),
    async serve(arrival) {
      const { verb, path } = arrival
      const isAsset = path.startsWith(assetsPath)
      arrival.named(paths.includes(path) ? path : isAsset ? assetPath : otherPath)
      if (!isAtUrl(arrival)) return undefined
      if (path === '/ui') return sendOn(arrival, '/ui/')
      const asked = `${verb === 'HEAD' ? 'GET' : verb} ${path}`
      if (open[asked]) {
        arrival.admit(nobody)
        return open[asked](arrival)
      }
      if (paths.includes(path) && !signedIn[asked]) return refuseVerb(arrival, path)
      if (!paths.includes(path) && !asked.startsWith('GET ')) return refuseVerb(arrival, otherPath)
      return isAsset ? sendAsset(arrival, files()) : showSignedIn(arrival, signedIn[asked], files)
    },
    refuse: refusePage,
  }
}

/** Shows a page. Redirects to the sign-in and back if there is no session. */
async function showSignedIn(arrival: HttpArrival, show: Show | undefined, files: () => Console): Promise<void> {
  const { verb, path, search, edge } = arrival
  const shown = readCookie(arrival, 'pinfold')
  const session = shown === undefined ? undefined : await sessionOfCookie(edge.app, shown)
  if (!session) {
    const isPage = verb === 'GET' || verb === 'HEAD'
    const back = isPage && path !== '/ui/' ? `?${new URLSearchParams({ return: path + (search && `?${search}`) })}` : ''
    return sendOn(arrival, `/ui/signin${back}`)
  }
  arrival.admit({ ...arrival.caller, uid: session.identityUid })
  if (show) return show(arrival, session)
  sendConsole(arrival, session, files())
}

function refuseVerb(arrival: HttpArrival, path: string): void {
  const own = known.filter((one) => one.endsWith(` ${path}`)).map((one) => one.split(' ')[0]!)
  const verbs = own.length > 0 ? own : ['GET']
  send(arrival, 405, 'text/plain', `only ${verbs.join(' and ')} is allowed\n`, { allow: verbs.join(', ') })
}
