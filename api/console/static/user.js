// The user's page: send the token that the address has behind its #, which browsers do not send.
"use strict";

const entering = document.getElementById("enter");
const token = location.hash.slice(1);
if (entering && token) {
  entering.elements.token.value = token;
  history.replaceState(null, "", location.pathname);
  entering.submit();
}
