// A provider of OpenID Connect for the tests of signing in: the certified one of npm, with people who agree at once. Its
// arguments are the folder of the package, its port, and the address of Claude Ops. POST /test/person, /test/revoke and
// /test/rotate change what it knows.
import crypto from 'node:crypto';
import http from 'node:http';
import { pathToFileURL } from 'node:url';

const [, , folder, port, ops] = process.argv;
const { default: Provider } = await import(pathToFileURL(`${folder}/lib/index.js`));
const { default: Memory } = await import(pathToFileURL(`${folder}/lib/adapters/memory_adapter.js`)); // outlives a rotation of keys
const issuer = `http://127.0.0.1:${port}`;
const people = new Map();
const grants = new Set();
let current = '';

function make() {
  const { privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = { ...privateKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: crypto.randomUUID() };
  const provider = new Provider(issuer, {
    fetch: (url, options) => globalThis.fetch(url, { ...options, dispatcher: undefined }), // else it asks no address of this machine
    adapter: (name) => new Memory(name), jwks: { keys: [key] },
    clients: [{
      client_id: 'claudeops', client_secret: 'the-client-secret-of-tests', grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: [`${ops}/sign-in/callback/company`], backchannel_logout_uri: `${ops}/sign-in/logged-out/company`,
      backchannel_logout_session_required: true, id_token_signed_response_alg: 'ES256',
    }],
    cookies: { keys: ['of tests'] },
    scopes: ['openid', 'offline_access', 'profile', 'groups'],
    claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people.get(id) }) }),
    features: {
      devInteractions: { enabled: false }, backchannelLogout: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (ctx, form) => {
          ctx.body = `<!doctype html><title>Sign out</title>${form}<button type="submit" form="op.logoutForm" name="logout" value="yes" id="yes">Yes</button>`;
        },
      },
    },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  });
  provider.on('backchannel.error', (ctx, error) => console.error('back channel:', error));
  return provider;
}

let provider = make();

// The current person signs in and agrees.
async function interact(req, res) {
  const { prompt, params, session } = await provider.interactionDetails(req, res);
  if (prompt.name === 'login') {
    return provider.interactionFinished(req, res, { login: { accountId: current } });
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  const grantId = await grant.save();
  grants.add(grantId);
  return provider.interactionFinished(req, res, { consent: { grantId } });
}

async function change(req, res) {
  let body = '';
  for await (const part of req) body += part;
  if (req.url === '/test/person') {
    const { sub, ...claims } = JSON.parse(body);
    people.set(sub, claims);
    current = sub;
  } else if (req.url === '/test/revoke') {
    for (const id of grants) {
      for (const kind of ['AccessToken', 'RefreshToken', 'AuthorizationCode']) await provider[kind].revokeByGrantId(id);
    }
  } else {
    provider = make();
  }
  res.end('done');
}

const server = http.createServer(async (req, res) => {
  try {
    if (req.url.startsWith('/test/')) await change(req, res);
    else if (req.url.startsWith('/interaction/')) await interact(req, res);
    else await provider.callback()(req, res);
  } catch (error) {
    res.statusCode = 500;
    res.end(String(error));
  }
});
server.listen(Number(port), '127.0.0.1', () => console.log(`listens on ${issuer}`));
