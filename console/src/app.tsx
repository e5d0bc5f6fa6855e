/** Sign-in, routes and the frame. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useEffect, useState } from 'react';
import { Redirect, Router, useLocation } from 'wouter';
import { usePathname } from 'wouter/use-browser-location';
import { api, type Me, Problem, ROUTER_BASE, signInByLink, signOut, take, takeLink } from './api/client';
import { useLive } from './api/live';
import { MeContext, rightsOf } from './api/me';
import { type Place, readPlace, type Scope, scopePath } from './parts/address';
import { Boundary } from './parts/boundary';
import { Frame } from './parts/frame';
import { SAMPLE } from './parts/sample';
import { Empty, Failure, Loading } from './parts/states';
import { keepTheme, nextTheme, preferredTheme, type Theme } from './parts/theme';
import { Home } from './screens/home';
import { SignIn } from './screens/sign-in';
import { keepLanguage, type Language, LanguageContext, preferredLanguage, useWords } from './words';

const WHOLE_SCREEN = {
  home: Home,
  jobs: lazy(() => import('./screens/jobs')),
  keys: lazy(() => import('./screens/keys')),
};
const SCREEN = {
  try: lazy(() => import('./screens/try')),
  mind: lazy(() => import('./screens/mind')),
  ask: lazy(() => import('./screens/ask')),
  conversations: lazy(() => import('./screens/conversations')),
  knowledge: lazy(() => import('./screens/knowledge')),
  topics: lazy(() => import('./screens/topics')),
  stream: lazy(() => import('./screens/stream')),
};

export function App() {
  const [language, setLanguage] = useState<Language>(preferredLanguage);
  const [theme, setTheme] = useState<Theme>(preferredTheme);
  useEffect(() => {
    document.documentElement.lang = language === 'zh' ? 'zh-Hans' : 'en';
    keepLanguage(language);
  }, [language]);
  useEffect(() => keepTheme(theme), [theme]);
  return (
    <LanguageContext.Provider value={language}>
      <Router base={ROUTER_BASE}>
        <Entrance
          onLanguage={() => setLanguage(language === 'en' ? 'zh' : 'en')}
          onTheme={() => setTheme(nextTheme(theme))}
        />
      </Router>
    </LanguageContext.Provider>
  );
}

type Switches = { onLanguage: () => void; onTheme: () => void };

/** A link signs in once, and leads a newcomer to the page where it can be tried. */
function useLink(): { settled: boolean; refused: boolean } {
  const [, navigate] = useLocation();
  const [link] = useState(takeLink);
  const [state, setState] = useState({ settled: link === null, refused: false });
  useEffect(() => {
    if (link === null) return;
    signInByLink(link)
      .then(() => navigate(scopePath(SAMPLE, 'try'), { replace: true }))
      .then(() => setState({ settled: true, refused: false }))
      .catch(() => setState({ settled: true, refused: true }));
  }, [link, navigate]);
  return state;
}

/** Whoever is not signed in sees the sign-in, and stands afterwards where the address says. */
function Entrance(switches: Switches) {
  const queries = useQueryClient();
  const link = useLink();
  const me = useQuery({
    enabled: link.settled,
    queryKey: ['me'],
    queryFn: () => take(api.GET('/v1/key')) as Promise<Me>,
    staleTime: 600_000,
  });
  if (me.error instanceof Problem && me.error.status === 401)
    return <SignIn onDone={() => queries.resetQueries()} onLanguage={switches.onLanguage} wrongLink={link.refused} />;
  if (me.error) return <Failure error={me.error} retry={() => void me.refetch()} />;
  if (!me.data) return <Loading />;
  const leave = async () => {
    await signOut().catch(() => undefined);
    queries.clear();
    await queries.resetQueries();
    location.reload();
  };
  return (
    <MeContext.Provider value={me.data}>
      <Inside me={me.data} {...switches} onSignOut={leave} />
    </MeContext.Provider>
  );
}

function Inside({ me, ...switches }: Switches & { me: Me; onSignOut: () => void }) {
  useLocation();
  const path = usePathname();
  const place = readPlace(path.slice(ROUTER_BASE.length));
  const scope = 'scope' in place ? place.scope : null;
  useLive(rightsOf(me).reads ? scope : null);
  const words = useWords();
  const title = place.at === 'nowhere' ? words.frame.home : words.frame[place.at];
  useEffect(() => {
    document.title = `${title} · Recollect`;
  }, [title]);
  if (place.at === 'home' && me.agent !== null)
    return <Redirect to={scopePath({ agent: me.agent, user: me.user ?? '' }, 'mind')} replace />;
  return (
    <Frame scope={scope} screen={place.at === 'nowhere' ? 'home' : place.at} {...switches}>
      <Boundary key={path}>
        <Suspense fallback={<Loading />}>
          <Shown place={place} me={me} />
        </Suspense>
      </Boundary>
    </Frame>
  );
}

function Shown({ place, me }: { place: Place; me: Me }) {
  const words = useWords();
  const { reads, administers, bound } = rightsOf(me);
  if (place.at === 'keys' ? !administers || bound : place.at === 'jobs' && bound)
    return <Empty>{words.frame.mayNotSee}</Empty>;
  if (place.at !== 'keys' && !reads) return <Empty>{words.frame.mayNotRead}</Empty>;
  if (place.at === 'nowhere') return <Empty>{words.frame.nowhere}</Empty>;
  if (!('scope' in place)) {
    const Whole = WHOLE_SCREEN[place.at];
    return <Whole />;
  }
  const Screen = SCREEN[place.at];
  return <Screen key={key(place.scope)} scope={place.scope} />;
}

const key = (scope: Scope) => JSON.stringify([scope.agent, scope.user]);
