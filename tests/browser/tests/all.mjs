// All tests, in one process, so that they share a browser and servers.
import "./sign_in.mjs";
import "./search.mjs";
import "./keyboard.mjs";
import "./appearance.mjs";
import "./hostile.mjs";
import "./attacks.mjs";
import "./roles.mjs";
import "./valid.mjs";
